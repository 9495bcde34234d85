// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// Its broker has ended three minutes ago, and a worker runs still.
func TestAQueueEndsWithoutItsWorkers(t *testing.T) {
	now := time.Now()
	run := givenRun()
	run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: "tasks"}}
	run.Status.Phase = v1alpha1.RunRunning
	run.Status.AppWrapper = &v1alpha1.AppWrapperReference{Name: run.Name, UID: "uid-of-aw"}
	aw := &v1beta2.AppWrapper{}
	aw.Name, aw.Namespace, aw.UID, aw.Status.Phase = run.Name, run.Namespace, "uid-of-aw", v1beta2.AppWrapperRunning
	aw.OwnerReferences = []metav1.OwnerReference{{APIVersion: "codeflare.dev/v1alpha1", Kind: "Run", Name: run.Name, UID: run.UID, Controller: ptr.To(true)}}
	aw.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{
		{Name: run.Name + "-queue"},
		{Name: runplan.BrokerName(run.Name), Conditions: []metav1.Condition{{
			Type: string(v1beta2.ComponentSucceeded), Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now.Add(-3 * time.Minute)},
		}}},
		{Name: run.Name},
	}
	slim, err := slimAppWrapper(aw.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if aw = slim.(*v1beta2.AppWrapper); len(aw.Status.ComponentStatus) != 1 {
		t.Errorf("the cache has %d components", len(aw.Status.ComponentStatus))
	}
	broker := endedPod("broker", corev1.PodSucceeded, "")
	broker.Labels[v1alpha1.RoleLabel] = "broker"
	broker.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "broker", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: `{"succeeded":7,"failed":0}`},
	}}}
	api := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&v1alpha1.Run{}).
		WithIndex(&corev1.Pod{}, "status.phase", func(pod client.Object) []string { return []string{string(pod.(*corev1.Pod).Status.Phase)} }).
		WithObjects(run, aw, broker, endedPod("worker", corev1.PodRunning, "")).Build()
	counters, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{client: api, cached: api, live: api, recorder: events.NewFakeRecorder(9), metrics: counters, now: func() time.Time { return now }}
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: theRun}); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.Get(t.Context(), theRun, run); err != nil || run.Status.Phase != v1alpha1.RunSucceeded || run.Status.Queue == nil || run.Status.Queue.Succeeded != 7 {
		t.Errorf("the status is %+v: %v", run.Status, err)
	}
	if err := api.Get(t.Context(), theRun, &v1beta2.AppWrapper{}); !apierrors.IsNotFound(err) {
		t.Errorf("the AppWrapper is still there: %v", err)
	}
}
