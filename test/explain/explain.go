// SPDX-License-Identifier: Apache-2.0

// Package explain prints objects, events and the ends of logs of a cluster, for the reader of a
// failed test. It changes nothing.
package explain

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Cluster is the cluster to explain, with what is needed to print it.
type Cluster struct {
	Objects client.Client
	Logs    kubernetes.Interface
	// Print is testing.T's Logf.
	Print func(format string, args ...any)
	// Simulated reports whether a pod has no logs because it is simulated; nil if no pod is.
	Simulated func(corev1.Pod) bool
}

// Kinds prints the objects of some kinds, in a namespace or, for "", in all namespaces.
func (c Cluster) Kinds(ctx context.Context, namespace string, kinds ...client.ObjectList) {
	for _, list := range kinds {
		if err := c.Objects.List(ctx, list, client.InNamespace(namespace)); err != nil {
			c.Print("%v", err)
		} else if meta.LenList(list) > 0 {
			c.Print("%T in %s:\n%s", list, namespace, Readable(list))
		}
	}
}

// Object prints an object of all namespaces.
func (c Cluster) Object(ctx context.Context, name string, object client.Object) {
	if err := c.Objects.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		c.Print("%v", err)
		return
	}
	c.Print("%T:\n%s", object, Readable(object))
}

// Events prints the events of a namespace in order.
func (c Cluster) Events(ctx context.Context, namespace string) {
	events := &corev1.EventList{}
	if err := c.Objects.List(ctx, events, client.InNamespace(namespace)); err != nil {
		c.Print("%v", err)
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return happened(a).Compare(happened(b)) })
	for _, e := range events.Items {
		c.Print("event %s %s/%s %s: %s", happened(e).Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

// happened returns when an event was last seen. Events of the newer API have only the time of
// the first occurrence and, if they were repeated, a series.
func happened(e corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
}

// PodLogs prints the ends of the logs of a namespace's pods.
func (c Cluster) PodLogs(ctx context.Context, namespace string) {
	pods, err := c.Logs.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.Print("%v", err)
		return
	}
	for _, pod := range pods.Items {
		if c.Simulated != nil && c.Simulated(pod) {
			continue
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if s.RestartCount > 0 {
				c.podLog(ctx, pod, s.Name, true)
			}
			c.podLog(ctx, pod, s.Name, false)
		}
	}
}

// podLog prints the end of a container's log, or of the log before its last restart.
func (c Cluster) podLog(ctx context.Context, pod corev1.Pod, container string, previous bool) {
	lines := int64(40)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines}
	log, err := c.Logs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
	c.Print("log of %s in pod %s/%s (previous: %t, %v):\n…%s", container, pod.Namespace, pod.Name, previous, err, log)
}

// Readable formats an object or list for a person.
func Readable(object runtime.Object) string {
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
