// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// The standard limit of retries is 3.
func TestLateStartsHaveABudgetOfTheirOwn(t *testing.T) {
	late := []change{withPods(pending, pending)}
	fails := []change{verdict(kinds.Failed)}
	lost := []change{withPods(runs, pending), condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Minute)}
	limit := func(n int32) change { return policy(func(p *lifecycle.Policy) { p.RetryLimit = n }) }
	for sentence, tc := range map[string]struct {
		given           []change
		more            []change
		retries, starts int32
		fails           bool
	}{
		"a late start is a retry, of that budget":            {given: late, retries: 1, starts: 1},
		"a failure is none of that budget":                   {given: fails, retries: 1},
		"nor is a pod that was ready and is lost":            {given: lost, retries: 1},
		"failures leave it alone":                            {given: late, more: []change{retried(3)}, retries: 4, starts: 1},
		"it leaves the other one alone":                      {given: fails, more: []change{retried(3), startedLate(3)}, retries: 4, starts: 3},
		"it ends":                                            {given: late, more: []change{retried(3), startedLate(3)}, retries: 3, starts: 3, fails: true},
		"it ends beside failures":                            {given: late, more: []change{retried(4), startedLate(3)}, retries: 4, starts: 3, fails: true},
		"the other one ends beside late starts":              {given: fails, more: []change{retried(4), startedLate(1)}, retries: 4, starts: 1, fails: true},
		"so it does for lost pods":                           {given: lost, more: []change{retried(4), startedLate(1)}, retries: 4, starts: 1, fails: true},
		"a limit of 0 means no retry of either":              {given: late, more: []change{limit(0)}, fails: true},
		"neither of the other one":                           {given: fails, more: []change{limit(0)}, fails: true},
		"a limit is as large as can be":                      {given: late, more: []change{limit(1<<31 - 1), retried(1 << 30), startedLate(1 << 30)}, retries: 1<<30 + 1, starts: 1<<30 + 1},
		"an exit code that makes retries pointless ends all": {given: late, more: []change{policy(func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{13} }), withPods(broken), exitedWith(13)}, fails: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			for _, c := range append(tc.given, tc.more...) {
				c(&s)
			}
			d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
			if got := d.Status; got.Retries != tc.retries || got.StartupRetries != tc.starts {
				t.Errorf("there are %d retries and %d late starts, want %d and %d", got.Retries, got.StartupRetries, tc.retries, tc.starts)
			}
			want := v1beta2.AppWrapperResetting
			if tc.fails {
				want = v1beta2.AppWrapperFailed
			}
			if d.Status.Phase != want {
				t.Errorf("it is %s, want %s", d.Status.Phase, want)
			}
		})
	}
}

// The CRD of another controller may drop the number of late starts. They still end, and then so does a failure.
func TestLateStartsEndWhereTheyAreNotKept(t *testing.T) {
	s := runningJob()
	withPods(pending, pending)(&s)
	for starts := range 10 {
		d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
		if d.Status.Phase == v1beta2.AppWrapperFailed {
			if starts != 6 {
				t.Errorf("it failed after %d late starts, want the limit of 3 twice", starts)
			}
			return
		}
		if s.Status.Retries = d.Status.Retries; starts == 3 {
			failing := s
			failing.Components[0].Verdict = kinds.Failed
			if got := lifecycle.Decide(failing, deployedAt.Add(time.Hour)).Status.Phase; got != v1beta2.AppWrapperFailed {
				t.Errorf("after %d late starts a failure leads to %s", s.Status.Retries, got)
			}
			failing.Components[0].Verdict = kinds.Running
		}
	}
	t.Error("it is started without end")
}
