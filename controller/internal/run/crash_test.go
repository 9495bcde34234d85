// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/troubles"
)

var (
	everyAnswer = flag.Bool("crash.every-answer", false, "let every call fail with every error, not with one of them")
	seeds       = flag.Int("crash.seeds", 5, "how many lives of each story have several troubles at random")
)

// stories are lives of Runs, step by step. After each step all settle.
var stories = map[string][]func(*life){
	"success":           join(queues, starts, []func(*life){appWrapperIs(v1beta2.AppWrapperSucceeded)}),
	"wait":              join([]func(*life){passing(time.Minute)}, queues),
	"failure":           join(queues, starts, []func(*life){podFails, appWrapperIs(v1beta2.AppWrapperFailed, unhealthy)}),
	"cancel":            join(queues, starts, []func(*life){cancels}),
	"cancel early":      {cancels, applies},
	"deadline":          join([]func(*life){limited}, queues, starts, []func(*life){passing(time.Hour)}),
	"time to live":      join([]func(*life){lives}, queues, starts, []func(*life){appWrapperIs(v1beta2.AppWrapperSucceeded), passing(time.Hour)}),
	"somebody's delete": join(queues, starts, []func(*life){removes, passing(time.Hour)}),
	"refusal":           {refuses(apierrors.NewInvalid(v1beta2.GroupVersion.WithKind("AppWrapper").GroupKind(), "x", nil)), applies, passing(6 * time.Minute), refuses(nil), passing(6 * time.Minute), appWrapperIs(v1beta2.AppWrapperSuspended)},
	"no right":          {refuses(apierrors.NewForbidden(v1beta2.GroupVersion.WithResource("appwrappers").GroupResource(), "x", nil)), applies, passing(6 * time.Minute), refuses(nil), passing(6 * time.Minute)},
	"quota of objects":  {refuses(apierrors.NewConflict(v1beta2.GroupVersion.WithResource("appwrappers").GroupResource(), "x", errors.New("the quota has changed"))), applies, passing(time.Second), refuses(nil), passing(time.Minute), appWrapperIs(v1beta2.AppWrapperSuspended)},
	"name taken":        {taken, applies, passing(6 * time.Minute), removes, passing(6 * time.Minute)},
	"workflow": {
		appliesWorkflow, stepIs("prepare", v1beta2.AppWrapperSuspended), stepIs("prepare", v1beta2.AppWrapperSucceeded),
		stepIs("train", v1beta2.AppWrapperRunning, condition(v1beta2.PodsReady, metav1.ConditionTrue, "SufficientPodsReady")),
		stepIs("train", v1beta2.AppWrapperFailed, unhealthy), stepIs("report", v1beta2.AppWrapperSucceeded),
	},
	"sequence":            {appliesSequence, stepIs("step0", v1beta2.AppWrapperSucceeded), stepIs("step1", v1beta2.AppWrapperSucceeded)},
	"workflow, cancelled": {appliesWorkflow, stepIs("prepare", v1beta2.AppWrapperSucceeded), stepIs("train", v1beta2.AppWrapperRunning), cancels, passing(time.Hour)},
	"workflow, refused": {
		appliesWorkflow, refuses(apierrors.NewInvalid(v1beta2.GroupVersion.WithKind("AppWrapper").GroupKind(), "x", nil)),
		stepIs("prepare", v1beta2.AppWrapperSucceeded), passing(6 * time.Minute), refuses(nil), passing(6 * time.Minute), stepIs("train", v1beta2.AppWrapperSucceeded),
	},
	"no label": join(queues, starts, []func(*life){loseLabel, passing(time.Hour), appWrapperIs(v1beta2.AppWrapperSucceeded), passing(6 * time.Minute)}),
}

var (
	queues = []func(*life){applies, appWrapperIs(v1beta2.AppWrapperSuspended)}
	starts = []func(*life){
		appWrapperIs(v1beta2.AppWrapperResuming),
		appWrapperIs(v1beta2.AppWrapperRunning, condition(v1beta2.PodsReady, metav1.ConditionTrue, "SufficientPodsReady")),
	}
	unhealthy = condition(v1beta2.Unhealthy, metav1.ConditionTrue, "FoundFailedPods")
)

func join(parts ...[]func(*life)) []func(*life) {
	var all []func(*life)
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func applies(l *life) { l.must(l.api.Create(context.Background(), givenApplication())) }

// appliesWorkflow applies a workflow of four steps, and the program that they run.
func appliesWorkflow(l *life) {
	of := v1alpha1.ApplicationReference{Name: theProgram}
	l.appliesOf(v1alpha1.ApplicationSpec{API: v1alpha1.APIWorkflow, Workflow: &v1alpha1.Workflow{Steps: []v1alpha1.Step{
		{Name: "prepare", Application: of}, {Name: "train", Application: of, DependsOn: []string{"prepare"}},
		{Name: "evaluate", Application: of, DependsOn: []string{"train"}}, {Name: "report", Application: of, DependsOn: []string{"train"}, When: v1alpha1.WhenFailed},
	}}})
}

func appliesSequence(l *life) {
	l.appliesOf(v1alpha1.ApplicationSpec{API: v1alpha1.APISequence, Steps: []string{theProgram, theProgram}})
}

func (l *life) appliesOf(spec v1alpha1.ApplicationSpec) {
	workflow, program := givenApplication(), givenApplication()
	workflow.Spec, program.Name = spec, theProgram
	l.must(l.api.Create(context.Background(), workflow))
	l.must(l.api.Create(context.Background(), program))
}

func cancels(l *life) { l.edit(func(run *v1alpha1.Run) { run.Spec.Cancel = true }) }

func limited(l *life) {
	l.edit(func(run *v1alpha1.Run) { run.Spec.ActiveDeadlineSeconds = ptr.To(int64(600)) })
}

func lives(l *life) {
	l.edit(func(run *v1alpha1.Run) { run.Spec.TTLSecondsAfterFinished = ptr.To(int32(600)) })
}

func passing(d time.Duration) func(*life) { return func(l *life) { l.pass(d) } }

func removes(l *life) {
	if aw := l.appWrapper(theRun.Name); aw != nil {
		l.must(l.api.Delete(context.Background(), aw))
	}
}

func loseLabel(l *life) {
	aw := l.appWrapper(theRun.Name)
	aw.Labels = nil
	l.must(l.api.Update(context.Background(), aw))
}

func taken(l *life) {
	aw := &v1beta2.AppWrapper{}
	aw.Name, aw.Namespace, aw.UID = theRun.Name, theRun.Namespace, "uid-of-another"
	l.must(l.api.Create(context.Background(), aw))
}

func refuses(err error) func(*life) {
	return func(l *life) { l.refusal, l.enabled = err, !apierrors.IsForbidden(err) }
}

func podFails(l *life) {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.Labels = "digits-1-0", theRun.Namespace, map[string]string{v1alpha1.RunLabel: theRun.Name, v1beta2.AppWrapperLabel: theRun.Name}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "ValueError"},
	}}}
	l.must(l.api.Create(context.Background(), pod))
	appWrapperIs(v1beta2.AppWrapperRunning, unhealthy)(l)
}

// where is where each story ends.
var where = map[string]v1alpha1.RunPhase{
	"success": v1alpha1.RunSucceeded, "wait": v1alpha1.RunQueued, "failure": v1alpha1.RunFailed, "cancel": v1alpha1.RunCancelled,
	"cancel early": v1alpha1.RunCancelled, "deadline": v1alpha1.RunFailed, "time to live": "", "somebody's delete": v1alpha1.RunFailed,
	"refusal": v1alpha1.RunQueued, "quota of objects": v1alpha1.RunQueued, "no right": v1alpha1.RunQueued, "name taken": v1alpha1.RunQueued, "no label": v1alpha1.RunSucceeded,
	"workflow": v1alpha1.RunFailed, "sequence": v1alpha1.RunSucceeded, "workflow, cancelled": v1alpha1.RunCancelled, "workflow, refused": v1alpha1.RunQueued,
}

// TestCrash tells every story without trouble first, and then once for each call of the controller
// and each way in which that call can fail, once with each cache stale, and with several random
// troubles. After every step, the story must reach the same place as without trouble.
func TestCrash(t *testing.T) {
	var calls, told atomic.Int64
	t.Cleanup(func() { t.Logf("crash test: %d stories, %d calls, %d lives", len(stories), calls.Load(), told.Load()) })
	for title, story := range stories {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			calm := newLife(t, troubles.Reliable(nil), nil)
			calm.tell(story)
			if p := calm.place(); p.Status.Phase != where[title] {
				t.Fatalf("it ends %s, want %s; after the calls:\n%s", p.Status.Phase, where[title], calm.wire)
			}
			calls.Add(int64(len(calm.wire.Calls)))
			relive := func(name string, w *troubles.Wire) {
				told.Add(1)
				t.Run(name, func(t *testing.T) { newLife(t, w, calm).tell(story) })
			}
			for n, c := range calm.wire.Calls {
				for _, tr := range troubles.Of(c, n, *everyAnswer) {
					relive(fmt.Sprintf("call_%d_%s", n+1, tr), troubles.Reliable(map[int]troubles.Trouble{n + 1: tr}))
				}
			}
			for _, late := range []string{"Run", "AppWrapper", "Application"} {
				relive("late_"+late, &troubles.Wire{Lags: func(kind string) bool { return kind == late }})
			}
			for seed := range *seeds {
				relive(fmt.Sprintf("seed_%d", seed+1), troubles.AtRandom(uint64(seed+1), len(calm.wire.Calls)))
			}
		})
	}
}

// The calls of a life are what a Run costs. It is not read before its AppWrapper is made, because it was
// saved just before. A Run whose Application is there before it saves one status less.
func TestTheCallsOfALife(t *testing.T) {
	const begins = "patch status, patch status, create, patch status, "
	for title, want := range map[string]string{
		"success":      begins + "patch status, patch status, patch status",
		"failure":      begins + "patch status, patch status, list, patch status, list, patch status",
		"time to live": "patch status, " + begins + "patch status, patch status, patch status, delete", // observedGeneration
		"cancel":       begins + "patch status, patch status, patch status, delete",
		"no right":     "patch status, patch status, create, review, patch status, try, review, try, patch status, create, patch status",
		// Two statuses of each step are not seen, because it ends at once.
		"sequence": "patch status, get AppWrapper, " + strings.Repeat("patch status, patch status, create, patch status, ", 2) + "patch status",
	} {
		t.Run(title, func(t *testing.T) {
			l := newLife(t, troubles.Reliable(nil), nil)
			l.tell(stories[title])
			var names []string
			for _, c := range l.wire.Calls {
				names = append(names, c.Name)
			}
			if got := strings.Join(names, ", "); got != want {
				t.Errorf("the calls are\n%s, want\n%s", got, want)
			}
		})
	}
}

// A namespace that is being deleted may lose the right first. Then nothing can be created nor deleted,
// until the AppWrappers and the Run are gone, in any order.
func TestANamespaceGoesWhateverTheRunDoes(t *testing.T) {
	refused := refuses(apierrors.NewForbidden(v1beta2.GroupVersion.WithResource("appwrappers").GroupResource(), "x", errors.New("the namespace is being terminated")))
	goes := func(l *life) {
		if run := l.run(); run != nil {
			l.must(l.api.Delete(context.Background(), run))
		}
	}
	phases := map[string][]func(*life){
		"waiting": nil, "queued": queues, "running": join(queues, starts), "succeeded": stories["success"], "cancelled": join(queues, starts, []func(*life){refused, cancels}),
		"with a time to live": join([]func(*life){lives}, stories["success"]),
	}
	for phase, story := range phases {
		for order, last := range map[string][]func(*life){
			"the AppWrapper first": {refused, passing(time.Minute), removes, passing(time.Hour), goes},
			"the Run first":        {refused, passing(time.Minute), goes, passing(time.Hour)},
		} {
			t.Run(phase+", "+order, func(t *testing.T) {
				l := newLife(t, troubles.Reliable(nil), nil)
				l.tell(join(story, last))
				if p := l.place(); !p.Gone || len(p.AppWrappers) > 0 || l.process.failures > 0 {
					t.Errorf("the Run is gone: %t, AppWrappers: %v, errors: %d", p.Gone, p.AppWrappers, l.process.failures)
				}
			})
		}
	}
}

// A Run that was cancelled when the right was missing is deleted when it is back.
func TestWhatWasCancelledWithoutTheRightEndsLater(t *testing.T) {
	l := newLife(t, troubles.Reliable(nil), nil)
	refused := refuses(apierrors.NewForbidden(v1beta2.GroupVersion.WithResource("appwrappers").GroupResource(), "x", errors.New("no right")))
	l.tell(join(queues, starts, []func(*life){refused, cancels, passing(time.Minute)}))
	if len(l.appWrappers()) != 1 {
		t.Fatal("it was deleted without the right")
	}
	l.tell([]func(*life){refuses(nil), passing(2 * time.Minute)})
	if p := l.place(); p.Status.Phase != v1alpha1.RunCancelled || len(p.AppWrappers) > 0 {
		t.Errorf("it is %s, and there are %v", p.Status.Phase, p.AppWrappers)
	}
}

// The cache still has the Run as it was when its AppWrapper was promised. Since then the AppWrapper
// was made, recorded and deleted by somebody.
func TestAStaleCacheMakesNoSecondAppWrapper(t *testing.T) {
	l := newLife(t, troubles.Reliable(nil), nil)
	var promised *v1alpha1.Run
	l.wire.Lags = func(string) bool {
		if run := l.run(); run.Status.Phase == v1alpha1.RunPending && run.Status.AppWrapper == nil {
			promised = run
		}
		return false
	}
	applies(l)
	l.tell(nil)
	removes(l)
	l.process.caches[inCache{"Run", theRun.Name}], l.process.caches[inCache{"AppWrapper", theRun.Name}] = promised, client.Object(nil)
	l.process.reconcile()
	if l.made[theRun.Name] != 1 || l.appWrapper(theRun.Name) != nil {
		t.Errorf("%d AppWrappers were made", l.made[theRun.Name])
	}
}
