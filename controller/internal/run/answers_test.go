// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// An author who corrects the Application does not wait until the old answer is out of date.
func TestAnAnswerIsToOnePlanOfOneRun(t *testing.T) {
	plan := func(label string) runlife.Plan {
		aw := &v1beta2.AppWrapper{}
		aw.Labels = map[string]string{"a": label}
		return runlife.Plan{Planned: &runplan.Planned{AppWrapper: aw}}
	}
	var a answers
	o := &observation{Snapshot: runlife.Snapshot{Run: givenRun(), Plan: plan("one"), Answer: &runlife.Answer{Reason: runlife.Refused}}}
	a.remember(o)
	another := givenRun()
	another.UID = "uid-of-the-next"
	if a.to(givenRun(), plan("one")) == nil {
		t.Error("the answer is forgotten")
	}
	if a.to(givenRun(), plan("two")) != nil || a.to(another, plan("one")) != nil {
		t.Error("the answer is to something else, too")
	}
}
