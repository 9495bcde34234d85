// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// life is the life of a Run with the real reconciler and an API server in memory. It plays
// everything else.
type life struct {
	*testing.T
	now      time.Time
	api      client.WithWatch
	wire     *troubles.Wire
	process  *process  // nil while none runs
	startsAt time.Time // when the next one starts
	// refusal is what the API server says to AppWrappers, nil if it takes them.
	refusal error
	// enabled is the answer to reviews of the controller's own right.
	enabled bool

	made   map[string]int  // AppWrappers by name
	told   map[string]int  // events by reason
	over   troubles.Manner // why the story ended early, if it did
	places []place         // after each step
	calm   *life           // the same story without trouble; nil in that life itself
}

// Times and limits of a life.
const (
	// delayPerTrouble is how long one trouble may delay a story.
	delayPerTrouble = 20 * time.Second
	// downtime is how long no controller runs after a process has died.
	downtime = 2 * time.Second
	// manySteps is more than any story needs.
	manySteps = 200
)

// The deeds of others that end a story.
const (
	cancelled troubles.Manner = "cancelled"
	deleted   troubles.Manner = "deleted"
)

var (
	theRun         = client.ObjectKey{Namespace: "blue", Name: "digits-1"}
	theApplication = client.ObjectKey{Namespace: "blue", Name: "digits"}
)

// theProgram is the Application of all steps, where theApplication is a workflow.
const theProgram = "program"

func newLife(t *testing.T, w *troubles.Wire, calm *life) *life {
	t.Helper()
	born := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	l := &life{T: t, now: born, startsAt: born, wire: w, calm: calm, told: map[string]int{}, made: map[string]int{}, enabled: true}
	l.api = fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&v1alpha1.Run{}, &v1beta2.AppWrapper{}).
		WithIndex(&corev1.Pod{}, "status.phase", func(pod client.Object) []string { return []string{string(pod.(*corev1.Pod).Status.Phase)} }).
		WithObjects(givenRun()).Build()
	w.Outrun = l.outrun
	return l
}

func givenRun() *v1alpha1.Run {
	run := &v1alpha1.Run{}
	run.Name, run.Namespace, run.UID, run.Generation = theRun.Name, theRun.Namespace, "uid-of-run", 1
	run.Annotations = map[string]string{
		v1alpha1.AuthorAnnotation: "alice@example.com", v1alpha1.AuthorUIDAnnotation: "uid-of-alice",
		v1alpha1.AuthorMayAnnotation: "appwrappers.workload.codeflare.dev,jobs.batch",
	}
	run.Spec.Application.Name, run.Spec.Size = theApplication.Name, "xs"
	return run
}

func givenApplication() *v1alpha1.Application {
	app := &v1alpha1.Application{}
	app.Name, app.Namespace, app.Generation = theApplication.Name, theApplication.Namespace, 1
	app.Spec.API, app.Spec.Image, app.Spec.Command = v1alpha1.APIShell, "digits:1", "sleep 1"
	return app
}

type storyIsOver struct{}

// tell tells a story. If it is over early, it ends as it must.
func (l *life) tell(story []func(*life)) {
	l.Helper()
	defer func() {
		reason := recover()
		if _, over := reason.(storyIsOver); over {
			l.endAsItMust()
		} else if reason != nil {
			panic(reason)
		}
	}()
	l.settle()
	for _, step := range story {
		step(l)
		l.settle()
	}
	for reason, times := range l.told {
		if l.calm != nil && times > max(1, l.calm.told[reason]) {
			l.broken(fmt.Sprintf("users are told once: of %s %d times", reason, times))
		}
	}
}

// outrun plays another client that is faster than the controller.
func (l *life) outrun(how troubles.Manner) {
	switch how {
	case cancelled:
		l.over = how
		l.edit(func(run *v1alpha1.Run) { run.Spec.Cancel = true })
	case deleted:
		l.over = how
		if run := l.run(); run != nil {
			l.must(l.api.Delete(context.Background(), run))
		}
	default:
		l.edit(func(run *v1alpha1.Run) { run.Labels = map[string]string{"touched": "true"} })
	}
}

// endAsItMust checks that an hour after a cancel or a deletion nothing runs.
func (l *life) endAsItMust() {
	l.Helper()
	l.pass(time.Hour)
	run, left := l.run(), l.appWrappers()
	running := slices.ContainsFunc(left, func(aw v1beta2.AppWrapper) bool {
		ended := aw.Status.Phase == v1beta2.AppWrapperSucceeded || aw.Status.Phase == v1beta2.AppWrapperFailed
		return aw.Labels[v1alpha1.RunLabel] != "" && !ended // without the label, nobody sees it
	})
	switch {
	case run == nil && len(left) == 0:
	case l.over == deleted:
		l.broken("an hour after the Run was deleted nothing is left")
	case !run.Status.Phase.Terminal():
		l.broken(fmt.Sprintf("an hour after it was cancelled the Run has ended; it is %s", run.Status.Phase))
	case run.Status.Phase == v1alpha1.RunCancelled && running:
		l.broken("an hour after a Run was cancelled its AppWrapper is gone")
	}
}

// settle records the place that the story has reached. With a calm life, it waits until the story
// reaches the same place.
func (l *life) settle() {
	l.Helper()
	l.react()
	step, limit := len(l.places), l.now.Add(delayPerTrouble*time.Duration(max(1, len(l.wire.Troubles))))
	for l.calm != nil && l.over == "" && !reflect.DeepEqual(l.place(), l.calm.places[step]) {
		at, ever := l.next()
		if !ever || at.After(limit) {
			l.broken(fmt.Sprintf("trouble leads nowhere else; after step %d (-calm +troubled)\n%s", step, cmp.Diff(l.calm.places[step], l.place())))
		}
		l.now = later(l.now, at)
		l.react()
	}
	if l.over != "" {
		panic(storyIsOver{})
	}
	if run := l.run(); run != nil && run.Status.Resolved != nil && len(run.Status.Resolved.PerWorker) == 0 {
		l.broken("what the Run got stays in its status, although no cache has it")
	}
	l.places = append(l.places, l.place())
}

// react lets everyone react until nothing changes. Stale caches catch up last.
func (l *life) react() {
	l.Helper()
	for range manySteps {
		l.collectGarbage()
		if !l.control() && (l.process == nil || !l.process.catchUp(troubles.Never)) {
			return
		}
	}
	l.broken("all come to rest")
}

// control gives the controller its turn.
func (l *life) control() (moved bool) {
	if l.process == nil {
		if l.now.Before(l.startsAt) {
			return false
		}
		l.process = startProcess(l)
		l.process.catchUp(troubles.Never)
		return true
	}
	moved = l.process.catchUp(l.wire.Lags)
	if !l.process.ready() {
		return moved
	}
	if died := l.process.reconcile(); died {
		l.process, l.startsAt = nil, l.now.Add(downtime)
	}
	return true
}

// next returns when the controller will wake by itself.
func (l *life) next() (at time.Time, ever bool) {
	if l.process == nil {
		return l.startsAt, true
	}
	return l.process.at, !l.process.at.IsZero()
}

func (l *life) pass(d time.Duration) {
	l.Helper()
	until := l.now.Add(d)
	for at, ever := l.next(); ever && !at.After(until); at, ever = l.next() {
		l.now = later(l.now, at)
		l.react()
	}
	l.now = until
	l.react()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (l *life) collectGarbage() {
	if l.run() != nil {
		return
	}
	for _, aw := range l.appWrappers() {
		l.must(l.api.Delete(context.Background(), &aw))
	}
}

func (l *life) run() *v1alpha1.Run {
	run := &v1alpha1.Run{}
	if l.find(theRun, run) {
		return run
	}
	return nil
}

func (l *life) appWrapper(name string) *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{}
	if l.find(client.ObjectKey{Namespace: theRun.Namespace, Name: name}, aw) {
		return aw
	}
	return nil
}

func (l *life) appWrappers() []v1beta2.AppWrapper {
	var all v1beta2.AppWrapperList
	l.must(l.api.List(context.Background(), &all))
	return all.Items
}

func (l *life) find(key client.ObjectKey, into client.Object) bool {
	err := l.api.Get(context.Background(), key, into)
	if !apierrors.IsNotFound(err) {
		l.must(err)
	}
	return err == nil
}

func (l *life) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *life) edit(change func(*v1alpha1.Run)) {
	run := l.run()
	if run == nil {
		return
	}
	spec := run.DeepCopy().Spec
	change(run)
	if !reflect.DeepEqual(spec, run.Spec) {
		run.Generation++
	}
	l.must(l.api.Update(context.Background(), run))
}

// place is where a story is. Times are left out, because troubles cost time.
type place struct {
	Gone, Started bool
	Status        v1alpha1.RunStatus
	AppWrappers   []string
}

func (l *life) place() place {
	run := l.run()
	p := place{Gone: run == nil}
	for _, aw := range l.appWrappers() {
		p.AppWrappers = append(p.AppWrappers, aw.Name)
	}
	if run == nil {
		return p
	}
	p.Status, p.Started = run.Status, run.Status.StartTime != nil
	p.Status.StartTime, p.Status.CompletionTime = nil, nil
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	for i := range p.Status.Steps {
		p.Status.Steps[i].StartTime, p.Status.Steps[i].CompletionTime = nil, nil
	}
	return p
}

// broken fails the test and prints the calls.
func (l *life) broken(promise string) {
	l.Helper()
	l.Fatalf("broken: %s\nafter the calls:\n%s", promise, l.wire)
}

// appWrapperIs changes the phase and a condition of the AppWrapper, as its controller does.
func appWrapperIs(phase v1beta2.AppWrapperPhase, conditions ...metav1.Condition) func(*life) {
	return stepIs("", phase, conditions...)
}

// stepIs is the same for a step of a workflow.
func stepIs(step string, phase v1beta2.AppWrapperPhase, conditions ...metav1.Condition) func(*life) {
	return func(l *life) {
		aw := l.appWrapper(runplan.AppWrapperName(theRun.Name, step))
		if aw == nil {
			return
		}
		aw.Status.Phase = phase
		for _, c := range conditions {
			c.LastTransitionTime = metav1.Time{Time: l.now}
			meta.SetStatusCondition(&aw.Status.Conditions, c)
		}
		l.must(l.api.Status().Update(context.Background(), aw))
	}
}

func condition(kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: reason, Message: reason}
}
