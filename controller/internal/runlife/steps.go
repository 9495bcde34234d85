// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// A step is decided as if it were a Run of its own, which lives from the end of the steps before it
// to its own end. What is special about it is in this file.

// OfStep begins the snapshot of a step. The status of its Run is that of the step. Cancel, deadline
// and time to live are the workflow's.
func OfStep(run *v1alpha1.Run, i int) Snapshot {
	step := run.Status.Steps[i]
	own := runplan.ForStep(run, step.Step)
	own.Spec.Cancel, own.Spec.ActiveDeadlineSeconds, own.Spec.TTLSecondsAfterFinished = false, nil, nil
	own.Status = v1alpha1.RunStatus{
		Phase: step.Phase, Message: step.Message, AppWrapper: step.AppWrapper, StartTime: step.StartTime, CompletionTime: step.CompletionTime,
	}
	idle := step.Phase == v1alpha1.StepSkipped
	says := func(kind string, status metav1.ConditionStatus, reason string) {
		own.Status.Conditions = append(own.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	}
	switch step.Phase {
	case v1alpha1.StepWaiting:
		own.Status.Phase = v1alpha1.RunPending
		idle = fateOf(step, run.Status.Steps) != starts
		if step.Message != "" {
			says(v1alpha1.Accepted, metav1.ConditionFalse, Refused)
		}
	case v1alpha1.RunCancelled:
		says(v1alpha1.Failed, metav1.ConditionTrue, Cancelled)
	default:
		says(v1alpha1.Accepted, metav1.ConditionTrue, Planned)
	}
	return Snapshot{Run: own, Step: &step.Step, Idle: idle}
}

// step is the snapshot of a step, of the Run as it is stored now.
func (v *view) step(i int) Snapshot {
	s, observed := OfStep(v.Run, i), v.Steps[i]
	s.AppWrapper, s.Plan, s.Answer, s.Pods = observed.AppWrapper, observed.Plan, observed.Answer, observed.Pods
	return s
}

// fate is what the ends of the steps before it mean for a step.
type fate int

const (
	waits fate = iota
	starts
	skipped
)

func fateOf(step v1alpha1.StepStatus, all []v1alpha1.StepStatus) fate {
	allSucceeded, oneFailed := true, false
	for _, before := range all {
		if !slices.Contains(step.DependsOn, before.Name) {
			continue
		}
		if !before.Ended() {
			return waits
		}
		allSucceeded = allSucceeded && before.Phase == v1alpha1.RunSucceeded
		oneFailed = oneFailed || before.Phase == v1alpha1.RunFailed
	}
	agrees := map[v1alpha1.When]bool{v1alpha1.WhenAlways: true, v1alpha1.WhenFailed: oneFailed, v1alpha1.WhenSucceeded: allSucceeded, "": allSucceeded}
	if agrees[step.When] {
		return starts
	}
	return skipped
}

// IsWorkflow tells whether the plan has steps, and is not that of one of them.
func (s Snapshot) IsWorkflow() bool {
	return s.Step == nil && len(s.Plan.Planned) > 0 && s.Plan.Planned[0].Step != nil
}

// frozen: the Run is a workflow, and its steps are as they are now.
func frozen(v *view) (Decision, bool) {
	if !v.IsWorkflow() {
		return Decision{}, false
	}
	for _, planned := range v.Plan.Planned {
		v.status.Steps = append(v.status.Steps, v1alpha1.StepStatus{Step: *planned.Step.DeepCopy(), Phase: v1alpha1.StepWaiting})
	}
	steps := "1 step"
	if n := len(v.status.Steps); n > 1 {
		steps = fmt.Sprintf("%d steps", n)
	}
	if unused := v.Plan.Planned[0].Unused; unused != "" {
		steps += "; " + unused
	}
	v.status.Resolved = nil // of another Application
	v.set(v1alpha1.Accepted, metav1.ConditionTrue, Planned, steps)
	return v.enter(v1alpha1.RunPending, "its steps have not started").announcing(normal(Planned, actionPlan, steps)), true
}

// follow decides about the steps that have started or can start. That the steps before it have
// ended must be stored before a step starts.
func (v *view) follow() {
	v.ofSteps = make([]Decision, len(v.Run.Status.Steps))
	retries := int32(0)
	for i := range v.ofSteps {
		s := v.step(i)
		if aw := s.mine(); aw != nil {
			retries += aw.Status.Retries
		}
		if !s.Idle && !s.Run.Status.Phase.Terminal() {
			v.ofSteps[i] = Decide(s, v.now)
			v.adopt(i, v.ofSteps[i])
		}
	}
	v.status.Retries = max(v.status.Retries, retries)
	for v.skips() {
	}
}

// adopt writes a decision about a step into the status of the Run.
func (v *view) adopt(i int, d Decision) {
	step := &v.status.Steps[i]
	step.Phase, step.Message, step.AppWrapper = d.Status.Phase, d.Status.Message, d.Status.AppWrapper
	step.StartTime, step.CompletionTime = d.Status.StartTime, d.Status.CompletionTime
	if step.Phase == v1alpha1.RunPending && !meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.Accepted) {
		step.Phase = v1alpha1.StepWaiting
	}
	if v.status.StartTime == nil {
		v.status.StartTime = step.StartTime.DeepCopy()
	}
	if d.Status.LastFailure != nil {
		v.status.LastFailure = d.Status.LastFailure
	}
	for _, e := range d.Events {
		v.events = append(v.events, e.ofStep(step.Name))
	}
}

func (v *view) needsPods() bool {
	return slices.ContainsFunc(v.ofSteps, func(d Decision) bool { return d.NeedsPods })
}

// skips skips the first step that cannot start any more. Another may follow from that.
func (v *view) skips() bool {
	for i, step := range v.status.Steps {
		if step.Phase == v1alpha1.StepWaiting && fateOf(step, v.status.Steps) == skipped {
			why := "not all steps that it depends on have succeeded"
			if step.When == v1alpha1.WhenFailed {
				why = "no step that it depends on has failed"
			}
			v.skip(i, why)
			v.events = append(v.events, normal(reasonSkipped, actionFollow, why).ofStep(step.Name))
			return true
		}
	}
	return false
}

func (v *view) skip(i int, why string) {
	step := &v.status.Steps[i]
	step.Phase, step.Message, step.CompletionTime = v1alpha1.StepSkipped, why, &metav1.Time{Time: v.now}
}

// stop ends the steps that have not ended, when the Run ends. A step that could start may have an
// AppWrapper that no cache has yet: it is cancelled, so that the AppWrapper is deleted when it is seen.
func (v *view) stop(why string) {
	for i, step := range v.status.Steps {
		if step.Ended() {
			continue
		}
		v.skip(i, "the Run has ended: "+why)
		if step.Phase != v1alpha1.StepWaiting || fateOf(step, v.Run.Status.Steps) == starts {
			v.status.Steps[i].Phase = v1alpha1.RunCancelled
		}
	}
}

// finished: all steps have ended.
func finished(v *view) (Decision, bool) {
	if len(v.status.Steps) == 0 {
		return Decision{}, false
	}
	var failed []string
	for _, step := range v.status.Steps {
		if !step.Ended() {
			return Decision{}, false
		}
		if step.Phase == v1alpha1.RunFailed {
			failed = append(failed, "step "+step.Name+" has failed")
		}
	}
	if len(failed) > 0 {
		return v.fail(StepFailed, strings.Join(failed, "; ")), true
	}
	return v.succeed(Succeeded), true
}

// phases of steps: the Run has the first of them that a step has.
var phasesOfSteps = []v1alpha1.RunPhase{
	v1alpha1.RunRunning, v1alpha1.RunRetrying, v1alpha1.RunStarting, v1alpha1.RunPreempted, v1alpha1.RunQueued, v1alpha1.RunPending, v1alpha1.StepWaiting,
}

// stepping: the Run has steps, and not all have ended.
func stepping(v *view) (Decision, bool) {
	if len(v.status.Steps) == 0 {
		return Decision{}, false
	}
	ended, rank := 0, len(phasesOfSteps)-1
	var situation []string
	for _, step := range v.status.Steps {
		switch {
		case step.Ended():
			ended++
			continue
		case step.Phase != v1alpha1.StepWaiting:
			situation = append(situation, fmt.Sprintf("step %s is %s", step.Name, step.Phase))
		case step.Message != "":
			situation = append(situation, fmt.Sprintf("step %s waits: %s", step.Name, step.Message))
		}
		rank = min(rank, slices.Index(phasesOfSteps, step.Phase))
	}
	phase := phasesOfSteps[rank]
	if phase == v1alpha1.StepWaiting {
		phase = v1alpha1.RunPending
	}
	situation = append(situation, fmt.Sprintf("%d of %d steps have ended", ended, len(v.status.Steps)))
	d := v.enter(phase, strings.Join(situation, "; "))
	d.Steps = v.ofSteps
	for _, one := range v.ofSteps {
		d = d.requeueAt(v.now.Add(one.Requeue), v.now)
	}
	if at, limited := v.deadline(); limited {
		d = d.requeueAt(at, v.now)
	}
	return d, true
}

// leftOfSteps deletes the AppWrappers of steps that were stopped or, if the Run is being deleted, of
// all. It reports whether there is one.
func (v *view) leftOfSteps() (d Decision, left bool) {
	d = v.stay()
	d.Steps = make([]Decision, len(v.Run.Status.Steps))
	for i := range d.Steps {
		if s := v.step(i); !s.Idle {
			d.Steps[i] = Decide(s, v.now)
			left = left || d.Steps[i].Effect == Delete
		}
	}
	return d, left
}
