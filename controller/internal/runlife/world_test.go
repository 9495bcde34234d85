// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// born is when the Run of every world is created.
var born = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a Run, what it depends on, and the controller of Runs without an API server.
type world struct {
	run  *v1alpha1.Run // nil when it is gone
	aw   *v1beta2.AppWrapper
	app  *v1alpha1.Application
	pods []corev1.Pod
	// refusal is the reason with which the API server refuses AppWrappers; empty if it does not.
	refusal string
	now     time.Time

	// answer is what the process remembers.
	answer *runlife.Answer
	wake   time.Time

	// late: the cache does not have AppWrappers that are not recorded.
	late bool

	// brokerEnded is when the broker of a work queue did, if it has one and it did.
	brokerEnded time.Time

	made, writes, asked int // AppWrappers, saves, requests that save nothing
	lists               int // of pods
	died                func() bool
	notes               func(who, what string)
	broken              func(promise string)
}

func newWorld() *world {
	run := &v1alpha1.Run{}
	run.Name, run.Namespace, run.UID, run.Generation = "digits-1", "blue", "uid-of-run", 1
	run.CreationTimestamp = metav1.Time{Time: born}
	run.Spec.Application.Name, run.Spec.Size = "digits", "xs"
	run.Annotations = map[string]string{
		v1alpha1.AuthorAnnotation: "alice", v1alpha1.AuthorMayAnnotation: "appwrappers.workload.codeflare.dev,jobs.batch",
	}
	return &world{
		run: run, now: born, died: func() bool { return false }, notes: func(string, string) {}, broken: func(string) {},
	}
}

func application() *v1alpha1.Application {
	app := &v1alpha1.Application{}
	app.Name, app.Namespace, app.Generation = "digits", "blue", 1
	app.Spec.API, app.Spec.Image, app.Spec.Command = v1alpha1.APIShell, "digits:1", "sleep 1"
	return app
}

func (w *world) snapshot() runlife.Snapshot {
	s := runlife.Snapshot{Run: w.run, AppWrapper: w.aw, Answer: w.answer}
	if w.late && w.run.Status.AppWrapper == nil {
		s.AppWrapper = nil
	}
	if runlife.NeedsPlan(s) {
		s.Plan.Planned, s.Plan.Problems = runplan.Plans(runplan.Input{
			DataSets: []v1alpha1.DataSet{{ObjectMeta: metav1.ObjectMeta{Name: "tasks"}}}, Run: w.run, Application: w.app, Sizes: []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}, Settings: runplan.DefaultSettings(),
		})
	}
	return s
}

// look is one reconcile. It reports whether there may be more to do at once.
func (w *world) look() (again bool) {
	if w.run == nil {
		return false
	}
	s := w.snapshot()
	d := runlife.Decide(s, w.now)
	if d.NeedsPods {
		w.lists++
		s.Pods = &w.pods
		d = runlife.Decide(s, w.now)
	}
	w.check(s, d)
	w.wake = time.Time{}
	if d.Requeue > 0 {
		w.wake = w.now.Add(d.Requeue)
	}
	if !equality.Semantic.DeepEqual(w.run.Status, d.Status) {
		before := w.run.Status
		w.run = w.run.DeepCopy()
		w.run.Status = d.Status
		w.writes++
		w.noteStatus(before, d)
		if w.died() {
			w.answer = nil
			return true
		}
		again = true
	}
	if d.Effect != runlife.Nothing {
		again = w.act(d.Effect) || again
		if w.died() {
			w.answer = nil
			return true
		}
	}
	return again
}

// act plays the API server. It reports whether something has changed.
func (w *world) act(effect runlife.Effect) bool {
	w.notes("", "  "+string(effect))
	switch effect {
	case runlife.Create, runlife.Try:
		return w.create(effect)
	case runlife.Delete:
		w.aw = w.aw.DeepCopy()
		w.aw.DeletionTimestamp = &metav1.Time{Time: w.now}
	case runlife.DeleteRun:
		w.run, w.aw = nil, nil
	}
	return true
}

func (w *world) create(effect runlife.Effect) bool {
	w.asked++
	w.answer = &runlife.Answer{At: w.now}
	switch {
	case w.refusal != "":
		w.answer.Reason, w.answer.Message = w.refusal, "the API server's words"
	case effect == runlife.Create && w.aw == nil:
		w.made++
		w.answer = nil
		w.aw = appWrapper(w.run.UID)
		w.aw.UID = types.UID(fmt.Sprintf("uid-%d", w.made))
	case effect == runlife.Create:
		return false // AlreadyExists, and it is the Run's
	}
	return true
}

func appWrapper(owner types.UID) *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{}
	aw.Name, aw.Namespace = "digits-1", "blue"
	aw.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.RunKind, Name: "digits-1", UID: owner, Controller: ptr.To(true)}}
	return aw
}

// settle lets the controller look until nothing changes.
func (w *world) settle() {
	for range 20 {
		if !w.look() {
			w.rest()
			return
		}
	}
	w.broken("the controller comes to rest")
}

// rest checks what must be true when there is nothing left to do.
func (w *world) rest() {
	cancelled := w.run != nil && w.run.Status.Phase == v1alpha1.RunCancelled
	if cancelled && !w.late && w.aw != nil && runlife.Owns(w.run, w.aw) && w.aw.DeletionTimestamp.IsZero() {
		w.broken("nothing of a Run that was cancelled runs")
	}
}

// pass lets time pass. The controller looks whenever it has asked to.
func (w *world) pass(d time.Duration) {
	until := w.now.Add(d)
	for !w.wake.IsZero() && w.wake.After(w.now) && !w.wake.After(until) {
		w.now = w.wake
		w.settle()
	}
	w.now = until
}

// jumps lets the clock jump. What the controller waits for comes when as much time has passed as it
// was to wait.
func (w *world) jumps(by time.Duration) {
	w.now = w.now.Add(by)
	if !w.wake.IsZero() {
		w.wake = w.wake.Add(by)
	}
}

// change lets others change the AppWrapper.
func (w *world) change(what string, change func(*v1beta2.AppWrapper)) {
	if w.aw == nil {
		return
	}
	w.aw = w.aw.DeepCopy()
	change(w.aw)
	w.notes("AppWrapper", what)
	w.settle()
}

func (w *world) moves(to v1beta2.AppWrapperPhase) {
	w.change("is "+string(to), func(aw *v1beta2.AppWrapper) {
		aw.Status.Phase = to
		switch to {
		case v1beta2.AppWrapperResetting:
			aw.Status.Retries++
		case v1beta2.AppWrapperResuming:
			w.condition(aw, v1beta2.PodsReady, metav1.ConditionFalse, "InsufficientPodsReady")
			w.condition(aw, v1beta2.Unhealthy, metav1.ConditionFalse, "Resuming")
			w.pods = nil
		case v1beta2.AppWrapperFailed:
			w.condition(aw, v1beta2.Unhealthy, metav1.ConditionTrue, "FoundFailedPods")
		}
	})
}

func (w *world) ready() {
	w.change("has all pods ready", func(aw *v1beta2.AppWrapper) {
		aw.Status.Phase = v1beta2.AppWrapperRunning
		w.condition(aw, v1beta2.PodsReady, metav1.ConditionTrue, "SufficientPodsReady")
	})
}

// deactivates or activates the Workload.
func (w *world) deactivates(yes bool) {
	status, what := metav1.ConditionFalse, "is activated again"
	if yes {
		status, what = metav1.ConditionTrue, "is deactivated"
	}
	w.change(what, func(aw *v1beta2.AppWrapper) {
		w.condition(aw, v1beta2.Deactivated, status, "DeactivatedByHand")
		meta.FindStatusCondition(aw.Status.Conditions, string(v1beta2.Deactivated)).Message = "a person has set spec.active to false"
	})
}

// podFails is noticed by the AppWrapper.
func (w *world) podFails() {
	w.pods = []corev1.Pod{failedPod("digits-1-0-abcde", 1, "Traceback\nValueError: no", w.now)}
	w.change("is unhealthy", func(aw *v1beta2.AppWrapper) {
		w.condition(aw, v1beta2.Unhealthy, metav1.ConditionTrue, "FoundFailedPods")
	})
}

func (w *world) condition(aw *v1beta2.AppWrapper, kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&aw.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, Reason: reason, Message: "1 pod failed", LastTransitionTime: metav1.Time{Time: w.now},
	})
}

func failedPod(name string, code int32, log string, at time.Time) corev1.Pod {
	pod := corev1.Pod{}
	pod.Name, pod.Status.Phase = name, corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: log, FinishedAt: metav1.Time{Time: at}},
	}}}
	return pod
}

// applies creates, changes or removes the Application.
func (w *world) applies(app *v1alpha1.Application) {
	w.app = app
	w.notes("user", fmt.Sprintf("the Application exists: %t", app != nil))
	w.settle()
}

func (w *world) edits(what string, edit func(*v1alpha1.RunSpec)) {
	if w.run == nil {
		return
	}
	w.run = w.run.DeepCopy()
	edit(&w.run.Spec)
	w.run.Generation++
	w.notes("user", what)
	w.settle()
}

func (w *world) cancels() {
	w.edits("cancels", func(spec *v1alpha1.RunSpec) { spec.Cancel = true })
}

// removes lets somebody, or the AppWrapper controller at the end of a deletion, remove the
// AppWrapper.
func (w *world) removes() {
	if w.run != nil && w.run.Status.AppWrapper == nil {
		w.made = 0 // nobody has seen it, and another one may be made
	}
	w.aw = nil
	w.notes("AppWrapper", "is gone")
	w.settle()
}

func (w *world) noteStatus(before v1alpha1.RunStatus, d runlife.Decision) {
	w.notes("controller", fmt.Sprintf("%s → %s: %s", name(before.Phase), name(d.Status.Phase), d.Status.Message))
	for _, c := range d.Status.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
			w.notes("", fmt.Sprintf("  %s %s %s  %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	if before.StartTime == nil && d.Status.StartTime != nil {
		w.notes("", "  startTime")
	}
	if before.Retries != d.Status.Retries {
		w.notes("", fmt.Sprintf("  retries %d", d.Status.Retries))
	}
	if f := d.Status.LastFailure; f != nil && !equality.Semantic.DeepEqual(before.LastFailure, f) {
		where := f.Pod
		if f.Step != "" {
			where += " of step " + f.Step
		}
		w.notes("", fmt.Sprintf("  lastFailure of attempt %d: %s of %s, %q", f.Attempt, f.Container, where, f.Message))
	}
	if q := d.Status.Queue; before.Queue == nil && q != nil {
		w.notes("", fmt.Sprintf("  queue of %d results, and %d failures", q.Succeeded, q.Failed))
	}
	for _, e := range d.Events {
		w.notes("", fmt.Sprintf("  event %s %s  %s", e.Type, e.Reason, e.Message))
	}
}

func name(phase v1alpha1.RunPhase) string {
	if phase == "" {
		return "(new)"
	}
	return string(phase)
}
