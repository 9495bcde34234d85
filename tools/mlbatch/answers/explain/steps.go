// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// steps is about steps of a workflow that failed, or have no AppWrapper because something is missing.
func steps(o Objects) (all []Cause) {
	if o.Run == nil {
		return nil
	}
	for _, step := range o.Run.Status.Steps {
		code := map[v1alpha1.RunPhase]Code{v1alpha1.RunFailed: "StepFailed", v1alpha1.StepWaiting: "StepRefused", v1alpha1.RunPending: "StepRefused"}[step.Phase]
		if code == "" || step.Message == "" || step.AppWrapper != nil && code == "StepRefused" {
			continue
		}
		found := cause(code, Evidence{"Run " + o.Run.Name, "status.steps, " + step.Name + " is " + string(step.Phase), step.Message})
		if step.CompletionTime != nil {
			since(*step.CompletionTime)(&found)
		}
		found.Step = step.Name
		all = append(all, found)
	}
	return all
}

// ofSteps are the causes of the steps that have begun. Each has its own.
func (o Objects) ofSteps() (all []Cause) {
	for _, step := range o.Steps {
		for _, c := range Explain(step.Objects).Causes {
			c.Step = step.Name
			all = append(all, c)
		}
	}
	return all
}

// progress says how far a workflow is, as its controller does.
func (o Objects) progress() string {
	if len(o.Run.Status.Steps) == 0 || o.Run.Status.Message == "" || o.Run.Status.Phase.Terminal() {
		return ""
	}
	return ": " + o.Run.Status.Message
}

// stepsRunWell: all steps that have begun were read, and run well.
func (o Objects) stepsRunWell() bool {
	begun := 0
	for _, step := range o.Run.Status.Steps {
		if step.AppWrapper != nil && !step.Ended() {
			begun++
		}
	}
	return begun > 0 && begun == len(o.Steps) && !slices.ContainsFunc(o.Steps, func(s Step) bool { return !s.runsWell() })
}
