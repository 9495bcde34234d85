// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/echoes"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// Pods that succeeded say which commit they ran, and pods that failed why.
func TestTheEndOfARunIsReadFromThePodsThatTellIt(t *testing.T) {
	good, bad := strings.Repeat("1", 40), strings.Repeat("2", 40)
	for phase, want := range map[v1beta2.AppWrapperPhase]string{v1beta2.AppWrapperSucceeded: good, v1beta2.AppWrapperFailed: bad} {
		run := givenRun()
		run.Status.Phase, run.Status.Resolved = v1alpha1.RunRunning, &v1alpha1.Resolved{Repo: "https://h/a/b/tree/c"}
		run.Status.AppWrapper = &v1alpha1.AppWrapperReference{Name: run.Name, UID: "uid-of-aw"}
		aw := &v1beta2.AppWrapper{}
		aw.Name, aw.Namespace, aw.UID, aw.Status.Phase = run.Name, run.Namespace, "uid-of-aw", phase
		controls := true
		aw.OwnerReferences = []metav1.OwnerReference{{APIVersion: "codeflare.dev/v1alpha1", Kind: "Run", Name: run.Name, UID: run.UID, Controller: &controls}}
		api := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&v1alpha1.Run{}).
			WithIndex(&corev1.Pod{}, "status.phase", func(pod client.Object) []string { return []string{string(pod.(*corev1.Pod).Status.Phase)} }).
			WithObjects(run, aw, endedPod("good", corev1.PodSucceeded, good), endedPod("bad", corev1.PodFailed, bad)).Build()
		counters, err := newMetrics(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		r := &Reconciler{client: api, cached: api, live: api, recorder: events.NewFakeRecorder(9), metrics: counters, now: time.Now, recorded: true}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: theRun}); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), theRun, run); err != nil || run.Status.Commit != want {
			t.Errorf("%s: the commit is %q, not %q: %v", phase, run.Status.Commit, want, err)
		}
	}
}

func endedPod(name string, phase corev1.PodPhase, commit string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = name, theRun.Namespace
	pod.Labels = map[string]string{v1beta2.AppWrapperLabel: theRun.Name, v1alpha1.RunLabel: theRun.Name}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: commit}}
	pod.Status = corev1.PodStatus{Phase: phase, InitContainerStatuses: []corev1.ContainerStatus{{Name: "code", State: ended}}}
	return pod
}

// lateCache has not heard of any AppWrapper.
type lateCache struct{ client.Reader }

func (c lateCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, is := into.(*v1beta2.AppWrapper); is {
		return apierrors.NewNotFound(v1beta2.GroupVersion.WithResource("appwrappers").GroupResource(), key.Name)
	}
	return c.Reader.Get(ctx, key, into, options...)
}

// The AppWrapper of a Run would hold its quota, and nobody would look after it.
func TestARunThatHasAnAppWrapperBecomesNoWorkflow(t *testing.T) {
	run, program, app := givenRun(), givenApplication(), givenApplication()
	program.Name = theProgram
	api := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&v1alpha1.Run{}).WithObjects(run, app, program).Build()
	counters, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	clock := func() time.Time { return now }
	r := &Reconciler{client: api, cached: lateCache{api}, live: api, recorder: events.NewFakeRecorder(9), metrics: counters, now: clock, recorded: true}
	r.settings.GPUResourceName = "nvidia.com/gpu"
	sizes := runplan.DefaultSizes()
	if err := api.Create(t.Context(), &sizes); err != nil {
		t.Fatal(err)
	}
	reconcile := func() {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: theRun}); err != nil {
			t.Fatal(err)
		}
	}
	reconcile() // promises the AppWrapper, and creates it
	now = now.Add(echoes.Longest)
	app.Spec = v1alpha1.ApplicationSpec{API: v1alpha1.APISequence, Steps: []string{theProgram}}
	if err := api.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if err := api.Get(t.Context(), theRun, run); err != nil || len(run.Status.Steps) > 0 || run.Status.AppWrapper == nil {
		t.Errorf("the steps are %v, the AppWrapper %v: %v", run.Status.Steps, run.Status.AppWrapper, err)
	}
}

// Without the webhooks, whoever makes a Run writes the annotations that say who did.
func TestNoRunIsAcceptedWithoutTheWebhooks(t *testing.T) {
	l := newLife(t, troubles.Reliable(nil), nil)
	l.process = startProcess(l)
	l.process.reconciler.recorded = false
	applies(l)
	l.tell(nil)
	if status := l.run().Status; !strings.Contains(status.Message, "it is unknown who made this Run") || len(l.made) > 0 {
		t.Errorf("it is %s: %s, and there are %d AppWrappers", status.Phase, status.Message, len(l.made))
	}
}

// The plans of all steps together may have 32 MiB, and 16 Runs are planned at the same time.
func TestTheWholePlanOfAWorkflowIsNotKept(t *testing.T) {
	l := newLife(t, troubles.Reliable(nil), nil)
	l.edit(func(run *v1alpha1.Run) {
		run.Spec.Env = map[string]v1alpha1.Text{"A": v1alpha1.Text(strings.Repeat("a", 30<<10))}
	})
	appliesSequence(l)
	l.process = startProcess(l)
	l.process.catchUp(troubles.Never)
	run, err := l.process.reconciler.read(t.Context(), theRun)
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.process.reconciler.observe(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o.Plan)
	if len(o.Plan.Planned) != 2 || err != nil || len(text) > 16<<10 {
		t.Errorf("%d plans have %d bytes: %v", len(o.Plan.Planned), len(text), err)
	}
}
