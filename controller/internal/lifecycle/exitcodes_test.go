// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// A list that is parsed for each pod costs memory for each.
func TestExitCodesAreParsedOnce(t *testing.T) {
	policy, _ := lifecycle.ParsePolicy(map[string]string{
		v1beta2.TerminalExitCodesAnnotation: "3,4,5", v1beta2.RetryableExitCodesAnnotation: "1,2",
	}, lifecycle.StandardDefaults())
	cost := func(failed int) float64 {
		s := runningJob()
		s.Policy = policy
		verdict(kinds.Failed)(&s)
		s.Pods = nil
		for range failed {
			s.Pods = append(s.Pods, lifecycle.Pod{Phase: broken, ExitCodes: []int32{1}})
		}
		return testing.AllocsPerRun(100, func() { lifecycle.Decide(s, deployedAt.Add(time.Hour)) })
	}
	if one, many := cost(1), cost(100); many > one {
		t.Errorf("a decision allocates %.0f times with one failed pod, and %.0f times with a hundred", one, many)
	}
}
