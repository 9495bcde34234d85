// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// An author who corrects the Application does not wait until the old answer is out of date.
func TestAnAnswerIsToOnePlanOfOneRun(t *testing.T) {
	plan := func(label string) runlife.Plan {
		aw := &v1beta2.AppWrapper{}
		aw.Labels = map[string]string{"a": label}
		return runlife.Plan{Planned: []*runplan.Planned{{AppWrapper: aw}}}
	}
	var a answers
	s := runlife.Snapshot{Run: givenRun(), Plan: plan("one"), Answer: &runlife.Answer{Reason: runlife.Refused}}
	a.remember(&s)
	another := givenRun()
	another.UID = "uid-of-the-next"
	if a.to(s) == nil {
		t.Error("the answer is forgotten")
	}
	for _, other := range []runlife.Snapshot{
		{Run: s.Run, Plan: plan("two")}, {Run: another, Plan: plan("one")}, {Run: s.Run, Plan: plan("one"), Step: &v1alpha1.Step{Name: "train"}},
	} {
		if a.to(other) != nil {
			t.Error("the answer is to something else, too")
		}
	}
	a.taken(&s)
	if a.to(s) != nil {
		t.Error("the answer is remembered after another one")
	}
}
