// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/platform"
)

// explain prints what a reader of a failed test wants to see.
func (s *story) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s.explainLogs(ctx) // first: the log of a pod goes with it
	for _, list := range kinds() {
		if err := s.admin.List(ctx, list); err != nil {
			s.t.Log(err)
		} else if meta.LenList(list) > 0 {
			s.t.Logf("%T in %s:\n%s", list, s.namespace, withoutBookkeeping(list))
		}
	}
	queue := &kueue.ClusterQueue{}
	if err := s.admin.Get(ctx, s.queue(), "", queue); err != nil {
		s.t.Log(err)
	} else {
		s.t.Logf("ClusterQueue:\n%s", withoutBookkeeping(queue))
	}
	s.explainEvents(ctx)
}

// explainEvents prints what has happened in the story's namespace, in order.
func (s *story) explainEvents(ctx context.Context) {
	events := &corev1.EventList{}
	if err := s.admin.List(ctx, events); err != nil {
		s.t.Log(err)
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return happened(a).Compare(happened(b)) })
	for _, e := range events.Items {
		s.t.Logf("event %s %s/%s %s: %s", happened(e).Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

// happened is when an event was seen last. Those of the newer API have only the
// time of their beginning and, if they were repeated, a series.
func happened(e corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
}

// explainLogs prints the ends of the logs of the operators and of the story's
// own pods. Simulated ones have none.
func (s *story) explainLogs(ctx context.Context) {
	for _, namespace := range []string{platform.Namespace, s.namespace} {
		pods, err := s.api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			s.t.Log(err)
			continue
		}
		for _, pod := range pods.Items {
			if slices.Contains(here.Simulated, pod.Spec.NodeName) {
				continue
			}
			for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
				if c.RestartCount > 0 {
					s.explainLog(ctx, pod, c.Name, true)
				}
				s.explainLog(ctx, pod, c.Name, false)
			}
		}
	}
}

// explainLog prints the end of what a container says, or said before it was
// started again.
func (s *story) explainLog(ctx context.Context, pod corev1.Pod, container string, previous bool) {
	lines := int64(40)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines}
	log, err := s.api.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
	s.t.Logf("log of %s in pod %s/%s (previous: %t, %v):\n…%s", container, pod.Namespace, pod.Name, previous, err, log)
}

// withoutBookkeeping is an object or list as a person wants to read it.
func withoutBookkeeping(object runtime.Object) string {
	forget := func(object runtime.Object) error {
		if o, ok := object.(metav1.Object); ok {
			o.SetManagedFields(nil)
		}
		return nil
	}
	if meta.IsListType(object) {
		_ = meta.EachListItem(object, forget)
	} else {
		_ = forget(object)
	}
	data, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
