// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// crowd is healthy work, beside which the faults are injected.
type crowd struct {
	works []*work
	uids  map[string]types.UID
}

// gather starts the healthy work: a program, a training that makes steps, one that has announced a pause, and one
// that uses the devices of another node.
func (r *room) gather() *crowd {
	r.Helper()
	pauses := &work{name: "pauses", trains: true}
	c := &crowd{uids: map[string]types.UID{}, works: []*work{
		{name: "computes"}, {name: "trains", trains: true}, pauses,
		{name: "is-elsewhere", gpus: 8, edit: func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{corev1.LabelHostname: "gpu-0"} }},
	}}
	for _, w := range c.works {
		w.room = r
		w.submit()
	}
	for _, w := range c.works {
		w.await("runs", time.Time{}, running)
		for _, pod := range w.itsPods() {
			c.uids[pod.Name] = pod.UID
		}
	}
	r.order(pauses.itsPods()[0], "rm /tmp/steps; wait $steps; touch -d '+2 hours' /tmp/progress")
	return c
}

// isUntouched: nothing has happened to healthy work, and the same processes run.
func (c *crowd) isUntouched(after string) {
	for _, w := range c.works {
		w.Helper()
		if l, touched := w.lives.first(w.name, time.Time{}, wasTouched); touched {
			w.Errorf("after %q, %s is touched: %s", after, w.name, why(l.aw))
		}
		pods := w.itsPods()
		if len(pods) != 1 {
			w.Errorf("after %q, %s has %d pods", after, w.name, len(pods))
		}
		for _, pod := range pods {
			if c.uids[pod.Name] != pod.UID || pod.Status.Phase != corev1.PodRunning || pod.Status.ContainerStatuses[0].RestartCount > 0 {
				w.Errorf("after %q, pod %s is another, or its program; %s", after, pod.Name, w.eventsOf(pod))
			}
		}
		w.Await(fmt.Sprintf("after %q, %s is ready", after, w.name), w.isReady)
	}
}

// isReady: a probe may have failed while the machine stood still.
func (w *work) isReady() error {
	for _, pod := range w.itsPods() {
		if !pod.Status.ContainerStatuses[0].Ready {
			return fmt.Errorf("pod %s is not; %s", pod.Name, w.eventsOf(pod))
		}
	}
	return nil
}

// eventsOf is what the kubelet and others reported of a pod, such as why a probe failed.
func (w *work) eventsOf(pod corev1.Pod) string {
	events := &corev1.EventList{}
	w.Must(w.admin.List(w.Context(), events, client.InNamespace(pod.Namespace)))
	text := fmt.Sprintf("its UID is %s, and its phase %s", pod.UID, pod.Status.Phase)
	for _, e := range events.Items {
		if e.InvolvedObject.Name == pod.Name {
			text += fmt.Sprintf("; %s %s: %s", e.LastTimestamp.Format(time.TimeOnly), e.Reason, e.Message)
		}
	}
	return text
}

func wasTouched(aw *workload.AppWrapper) bool {
	return aw.Status.Migrations+aw.Status.Retries > 0 || aw.Status.Phase == workload.AppWrapperResetting || len(lostTo(aw)) > 0 ||
		meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.Unhealthy))
}
