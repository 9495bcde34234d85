// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// hour is so many hours after the pods of these tests were created.
func hour(n int) metav1.Time { return metav1.Unix(int64(1_000_000+3600*n), 0) }

// probed is a running pod whose container has a readiness probe, which calls it not ready since hour 2.
func probed(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := pod("p", corev1.PodRunning)
	p.Spec.Containers = []corev1.Container{{Name: "main", ReadinessProbe: &corev1.Probe{}}}
	began := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: hour(1)}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: began}}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: hour(2)},
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: hour(2)},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// beside adds a container without a probe.
func beside(ready bool, state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "beside"})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "beside", Ready: ready, State: state})
	}
}

// toStart gives the container a startup probe. Its present life began at this hour.
func toStart(began int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].StartupProbe = &corev1.Probe{}
		p.Status.ContainerStatuses[0].State.Running.StartedAt = hour(began)
	}
}

// toldOf is when the API server was told of the conditions.
func toldOf(at metav1.Time, subresource string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		fields := metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{"f:status":{}}}}}`)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: subresource, Time: &at, FieldsV1: fields}}
	}
}

func TestOnlyAReadinessProbeTellsOfAHang(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for sentence, tc := range map[string]struct {
		pod  *corev1.Pod
		want metav1.Time // since when it hangs; zero: it does not
	}{
		"a pod that its probe calls not ready": {probed(), hour(2)},
		"that is ready":                        {probed(func(p *corev1.Pod) { p.Status.Conditions[2].Status = corev1.ConditionTrue }), metav1.Time{}},
		"that starts":                          {probed(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), metav1.Time{}},
		"that has ended":                       {probed(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), metav1.Time{}},
		"without a probe":                      {probed(func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = nil }), metav1.Time{}},
		"of which the node controller says so": {probed(func(p *corev1.Pod) {
			p.Status.Conditions[2].Status, p.Status.ContainerStatuses[0].Ready = corev1.ConditionTrue, true
		}), metav1.Time{}},
		"of which nobody says so":               {probed(func(p *corev1.Pod) { p.Status.Conditions = nil }), metav1.Time{}},
		"whose container has ended":             {probed(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = ended }), metav1.Time{}},
		"whose container waits to run again":    {probed(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = waits }), metav1.Time{}},
		"whose image took long to pull":         {probed(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running.StartedAt = hour(4) }), hour(4)},
		"beside one that waits without a probe": {probed(beside(false, waits)), metav1.Time{}},
		"with a side-car that is well":          {probed(beside(true, corev1.ContainerState{})), hour(2)},
		"with a side-car that has ended":        {probed(beside(false, ended)), metav1.Time{}},
		"with a side-car that starts":           {probed(func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init"}} }), metav1.Time{}},
		"that still starts":                     {probed(toStart(2)), metav1.Time{}},
		"that has started":                      {probed(toStart(1)), hour(2)},
		"that starts again":                     {probed(toStart(3)), metav1.Time{}},
		"whose restart is to come":              {probed(toStart(1), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = waits }), metav1.Time{}},
		"on a node whose clock is wrong":        {probed(toldOf(hour(5), "status")), hour(5)},
		"that somebody else has changed":        {probed(toldOf(hour(5), "")), hour(2)},
	} {
		t.Run(sentence, func(t *testing.T) { checkHang(t, tc.pod, tc.want.Time) })
	}
}

// checkHang: the slim pod says so, too, and a change wakes the AppWrapper.
func checkHang(t *testing.T, p *corev1.Pod, want time.Time) {
	t.Helper()
	once := slim(p).(*corev1.Pod)
	twice := slim(once.DeepCopy()).(*corev1.Pod)
	for _, got := range []*corev1.Pod{p, once, twice} {
		if got := (&observation{}).podOf(got).NotReadySince; !got.Equal(want) {
			t.Errorf("it is not ready since %s, want %s", got, want)
		}
	}
	ready := p.DeepCopy()
	ready.Status.Conditions = nil
	if wakes := podChanged().Update(event.UpdateEvent{ObjectOld: slim(ready), ObjectNew: once}); wakes == want.IsZero() {
		t.Errorf("it wakes the AppWrapper: %t", wakes)
	}
}
