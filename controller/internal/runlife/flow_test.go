// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// flow is a world whose Run is a workflow. What it has of a step is found by the step's name.
type flow struct {
	world
	apps    []v1alpha1.Application
	works   map[string]*v1beta2.AppWrapper
	answers map[string]*runlife.Answer
	podsOf  map[string][]corev1.Pod
	madeFor map[string]int
}

func newFlow(steps ...v1alpha1.Step) *flow {
	w := newWorld()
	program, workflow := application(), application()
	program.Name = "program"
	workflow.Spec = v1alpha1.ApplicationSpec{API: v1alpha1.APIWorkflow, Workflow: &v1alpha1.Workflow{Steps: steps}}
	return &flow{
		world: *w, apps: []v1alpha1.Application{*workflow, *program}, works: map[string]*v1beta2.AppWrapper{},
		answers: map[string]*runlife.Answer{}, podsOf: map[string][]corev1.Pod{}, madeFor: map[string]int{},
	}
}

func step(name string, when v1alpha1.When, dependsOn ...string) v1alpha1.Step {
	return v1alpha1.Step{Name: name, Application: v1alpha1.ApplicationReference{Name: "program"}, When: when, DependsOn: dependsOn}
}

func (f *flow) snapshot() runlife.Snapshot {
	s := runlife.Snapshot{Run: f.run}
	f.plan(&s)
	for i := range f.run.Status.Steps {
		one := runlife.OfStep(f.run, i)
		one.Answer = f.answers[one.Step.Name]
		if !f.late || f.run.Status.Steps[i].AppWrapper != nil {
			one.AppWrapper = f.works[one.Step.Name]
		}
		f.plan(&one)
		s.Steps = append(s.Steps, one)
	}
	return s
}

func (f *flow) plan(s *runlife.Snapshot) {
	if !runlife.NeedsPlan(*s) {
		return
	}
	in := runplan.Input{
		Run: s.Run, Step: s.Step, Applications: f.apps, Sizes: []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}, Settings: runplan.DefaultSettings(),
	}
	for i := range f.apps {
		if f.apps[i].Name == s.Run.Spec.Application.Name {
			in.Application = &f.apps[i]
		}
	}
	s.Plan.Planned, s.Plan.Problems = runplan.Plans(in)
}

// look is one reconcile, as in world.
func (f *flow) look() (again bool) {
	s := f.snapshot()
	d := runlife.Decide(s, f.now)
	if d.NeedsPods {
		for i, one := range d.Steps {
			if one.NeedsPods {
				f.lists++
				pods := f.podsOf[s.Steps[i].Step.Name]
				s.Steps[i].Pods = &pods
			}
		}
		d = runlife.Decide(s, f.now)
	}
	f.check(s, d)
	f.wake = time.Time{}
	if d.Requeue > 0 {
		f.wake = f.now.Add(d.Requeue)
	}
	if !equality.Semantic.DeepEqual(f.run.Status, d.Status) {
		before := f.run.Status
		f.run = f.run.DeepCopy()
		f.run.Status = d.Status
		f.writes++
		f.noteStatus(before, d)
		if f.dies() {
			return true
		}
		again = true
	}
	for i, one := range d.Steps {
		if one.Effect == runlife.Nothing {
			continue
		}
		again = f.act(s.Steps[i], one.Effect) || again
		if f.dies() {
			return true
		}
	}
	return again
}

// dies lets the process die, and the next one begin.
func (f *flow) dies() bool {
	if !f.died() {
		return false
	}
	f.answers = map[string]*runlife.Answer{}
	return true
}

func (f *flow) act(s runlife.Snapshot, effect runlife.Effect) bool {
	name := s.Step.Name
	f.notes("", fmt.Sprintf("  %s %s", effect, s.AppWrapperName()))
	if effect == runlife.Delete {
		f.works[name] = f.works[name].DeepCopy()
		f.works[name].DeletionTimestamp = &metav1.Time{Time: f.now}
		return true
	}
	f.answers[name] = &runlife.Answer{At: f.now}
	switch {
	case f.refusal != "":
		f.answers[name].Reason, f.answers[name].Message = f.refusal, "the API server's words"
	case effect == runlife.Create && f.works[name] == nil:
		delete(f.answers, name)
		f.madeFor[name]++
		aw := appWrapper(f.run.UID)
		aw.Name, aw.UID = s.AppWrapperName(), types.UID(fmt.Sprintf("uid-of-%s-%d", name, f.madeFor[name]))
		f.works[name] = aw
	case effect == runlife.Create:
		return false // AlreadyExists, and it is the step's
	}
	return true
}

func (f *flow) settle() {
	for range 50 {
		if !f.look() {
			f.rest()
			return
		}
	}
	f.broken("the controller comes to rest")
}

// rest checks what must be true when there is nothing left to do.
func (f *flow) rest() {
	for _, step := range f.run.Status.Steps {
		aw := f.works[step.Name]
		stopped := step.Phase == v1alpha1.RunCancelled || step.Phase == v1alpha1.StepSkipped
		f.promise("nothing of a step that was stopped runs", f.late || !stopped || aw == nil || !aw.DeletionTimestamp.IsZero())
	}
}

func (f *flow) pass(d time.Duration) {
	until := f.now.Add(d)
	for !f.wake.IsZero() && f.wake.After(f.now) && !f.wake.After(until) {
		f.now = f.wake
		f.settle()
	}
	f.now = until
}

// moves lets the AppWrapper of a step enter a phase.
func (f *flow) moves(step string, to v1beta2.AppWrapperPhase) {
	if f.works[step] == nil {
		return
	}
	aw := f.works[step].DeepCopy()
	aw.Status.Phase = to
	switch to {
	case v1beta2.AppWrapperRunning:
		f.condition(aw, v1beta2.PodsReady, metav1.ConditionTrue, "SufficientPodsReady")
	case v1beta2.AppWrapperResetting:
		aw.Status.Retries++
	case v1beta2.AppWrapperFailed:
		f.podsOf[step] = []corev1.Pod{failedPod("digits-1-"+step+"-0", 1, "ValueError", f.now)}
		f.condition(aw, v1beta2.Unhealthy, metav1.ConditionTrue, "FoundFailedPods")
	}
	f.works[step] = aw
	f.notes("AppWrapper", fmt.Sprintf("of step %s is %s", step, to))
	f.settle()
}

func (f *flow) ends(step string, as v1beta2.AppWrapperPhase) {
	for _, phase := range []v1beta2.AppWrapperPhase{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning, as} {
		f.moves(step, phase)
		f.pass(time.Minute)
	}
}

func (f *flow) removes(step string) {
	recorded := slices.ContainsFunc(f.run.Status.Steps, func(s v1alpha1.StepStatus) bool { return s.Name == step && s.AppWrapper != nil })
	if !recorded {
		delete(f.madeFor, step) // nobody has seen it, and another one may be made
	}
	delete(f.works, step)
	f.notes("AppWrapper", "of step "+step+" is gone")
	f.settle()
}

// lags lets the cache be late, and catchesUp ends that.
func (f *flow) lags() {
	f.late = true
	f.notes("cache", "is late")
}

func (f *flow) catchesUp() {
	f.late = false
	f.notes("cache", "is up to date")
	f.settle()
}

// loses removes the Application of all steps, and finds brings it back.
func (f *flow) loses() {
	f.apps = f.apps[:1]
	f.notes("user", "deletes the Application of the steps")
	f.settle()
}

func (f *flow) finds() {
	program := application()
	program.Name = "program"
	f.apps = append(f.apps[:1:1], *program)
	f.notes("user", "creates the Application of the steps")
	f.settle()
}

func (f *flow) cancels() {
	f.run = f.run.DeepCopy()
	f.run.Spec.Cancel = true
	f.run.Generation++
	f.notes("user", "cancels")
	f.settle()
}

func (f *flow) deletes() {
	f.run = f.run.DeepCopy()
	f.run.DeletionTimestamp = &metav1.Time{Time: f.now}
	f.notes("user", "deletes the Run, which has a finalizer")
	f.settle()
}

func (f *flow) noteStatus(before v1alpha1.RunStatus, d runlife.Decision) {
	f.world.noteStatus(before, d)
	for i, is := range d.Status.Steps {
		if i >= len(before.Steps) || before.Steps[i].Phase != is.Phase || before.Steps[i].Message != is.Message {
			f.notes("", fmt.Sprintf("  step %s %s  %s", is.Name, is.Phase, is.Message))
		}
	}
}

// check checks what must be true of every decision about a workflow.
func (f *flow) check(s runlife.Snapshot, d runlife.Decision) {
	was, is := s.Run.Status, d.Status
	writes := !equality.Semantic.DeepEqual(was, is)
	f.promise("a decision is complete", !d.NeedsPods)
	f.promise("terminal is terminal", !was.Phase.Terminal() || !writes)
	f.promise("an event is announced only when something has happened", len(d.Events) == 0 || writes)
	f.promise("startTime is set once", was.StartTime == nil || was.StartTime.Equal(is.StartTime))
	f.promise("completionTime is there at the end, and only then", (is.CompletionTime != nil) == is.Phase.Terminal())
	f.promise("the Run itself makes nothing", d.Effect == runlife.Nothing)
	f.promise("steps are frozen once", len(was.Steps) == 0 || len(was.Steps) == len(is.Steps))
	f.promise("no step without Accepted", len(is.Steps) == 0 || meta.IsStatusConditionTrue(is.Conditions, v1alpha1.Accepted))
	f.promise("deciding again decides the same", equality.Semantic.DeepEqual(d, runlife.Decide(s, f.now)))
	for i := range is.Steps {
		f.promise("nothing runs after the end", !is.Phase.Terminal() || is.Steps[i].Ended())
		f.promise("a step has ended if and only if it has a completionTime", is.Steps[i].Ended() == (is.Steps[i].CompletionTime != nil))
		f.promise("a skipped step has no AppWrapper", is.Steps[i].Phase != v1alpha1.StepSkipped || f.works[is.Steps[i].Name] == nil)
	}
	for i := range was.Steps {
		f.checkStep(s, d, i)
	}
	isFailed := func(step v1alpha1.StepStatus) bool { return step.Phase == v1alpha1.RunFailed }
	stopped := func(step v1alpha1.StepStatus) bool { return step.Phase == v1alpha1.RunCancelled }
	f.promise("a Run whose step failed does not succeed", is.Phase != v1alpha1.RunSucceeded || !slices.ContainsFunc(is.Steps, isFailed))
	f.promise("a Run of which something was stopped does not succeed", is.Phase != v1alpha1.RunSucceeded || !slices.ContainsFunc(is.Steps, stopped))
}

func (f *flow) checkStep(s runlife.Snapshot, d runlife.Decision, i int) {
	was, is, effect := s.Run.Status.Steps[i], d.Status.Steps[i], runlife.Nothing
	if len(d.Steps) > 0 {
		effect = d.Steps[i].Effect
	}
	f.promise("what has ended has ended", !was.Ended() || equality.Semantic.DeepEqual(was, is))
	f.promise("what was recorded is never made again", effect != runlife.Create || was.AppWrapper == nil)
	f.promise("a step is promised before it is made", effect != runlife.Create || was.Phase == v1alpha1.RunPending)
	f.promise("a step enters a phase or acts, never both", was.Phase == is.Phase || effect == runlife.Nothing)
	f.promise("only what was stopped or belongs to a deleted Run is deleted",
		effect != runlife.Delete || was.Phase == v1alpha1.RunCancelled || !s.Run.DeletionTimestamp.IsZero())
	f.promise("only what the Run owns is deleted", effect != runlife.Delete || runlife.Owns(s.Run, s.Steps[i].AppWrapper))
	if was.Phase != v1alpha1.StepWaiting || is.Phase == v1alpha1.StepWaiting || is.Phase == v1alpha1.StepSkipped {
		return
	}
	for _, before := range s.Run.Status.Steps {
		if slices.Contains(was.DependsOn, before.Name) {
			f.promise("no step starts before those before it have ended", before.Ended())
			f.promise("no step starts after a failure that it does not expect", was.When != v1alpha1.WhenSucceeded || before.Phase == v1alpha1.RunSucceeded)
		}
	}
}

func (f *flow) promise(sentence string, kept bool) {
	if !kept {
		f.broken(sentence)
	}
}

// place is what a crash must not change.
func (f *flow) place() any {
	status := f.run.Status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return []any{status, maps.Clone(f.works), maps.Clone(f.madeFor)}
}
