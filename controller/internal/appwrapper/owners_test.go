// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/test/given"
)

// others lets everyone else in the cluster do one thing: the garbage collector, kubelets, and
// the owners of pods.
func (l *life) others() (moved bool) {
	for _, does := range []func() bool{l.orphanDependents, l.collectGarbage, l.stopPods, l.makePods, l.watchDevices} {
		moved = does() || moved
	}
	return moved
}

// orphanDependents does what the garbage collector does for --cascade=orphan.
func (l *life) orphanDependents() bool {
	aw := l.api.theOne()
	if aw == nil || aw.DeletionTimestamp.IsZero() || !slices.Contains(aw.Finalizers, metav1.FinalizerOrphanDependents) {
		return false
	}
	for i := range l.story.Components {
		if component := l.component(i); component != nil {
			l.api.change(component, func(o client.Object) { o.SetOwnerReferences(nil) })
		}
	}
	l.api.change(aw, func(o client.Object) {
		o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerOrphanDependents }))
	})
	return true
}

// collectGarbage deletes objects whose owner is gone.
func (l *life) collectGarbage() (moved bool) {
	for _, object := range slices.Clone(l.api.objects) {
		owner := metav1.GetControllerOf(object)
		if owner == nil || !object.GetDeletionTimestamp().IsZero() {
			continue
		}
		if slices.ContainsFunc(l.api.objects, func(o client.Object) bool { return o.GetUID() == owner.UID }) {
			continue
		}
		l.delete(object)
		moved = true
	}
	return moved
}

func (l *life) delete(object client.Object) {
	if err := l.api.Delete(context.Background(), object); err != nil {
		l.Fatal(err)
	}
}

// stopPods plays the kubelets that respond.
func (l *life) stopPods() (moved bool) {
	for _, pod := range l.api.pods() {
		if !pod.DeletionTimestamp.IsZero() && !l.silent[pod.Name] {
			l.api.remove(pod)
			moved = true
		}
	}
	return moved
}

// makePods plays the owners of pods: each creates as many as requested.
func (l *life) makePods() (moved bool) {
	for i, c := range l.story.Components {
		component := l.component(i)
		if component == nil || component.GetDeletionTimestamp() != nil || l.reported(i) {
			continue
		}
		for have := l.podsThatCount(i, c.Replaces); have < c.Pods; have++ {
			l.makePod(i, component)
			moved = true
		}
	}
	return moved
}

func (l *life) reported(i int) bool {
	component := l.component(i)
	verdict := kinds.For(kindOf(component)).Verdict(component)
	return verdict == kinds.Succeeded || verdict == kinds.Failed
}

func (l *life) podsThatCount(component int, butFailed bool) int32 {
	count := int32(0)
	for _, pod := range l.podsOf(component) {
		if pod.DeletionTimestamp.IsZero() && (!butFailed || pod.Status.Phase != corev1.PodFailed) {
			count++
		}
	}
	return count
}

// makePod creates a pod from the template, with the labels that the controller has added.
func (l *life) makePod(i int, component *unstructured.Unstructured) {
	path := l.api.theOne().Status.ComponentStatus[i].PodSets[0].Path
	template, err := podtemplate.Find(component.Object, path)
	if err != nil {
		l.Fatal(err)
	}
	labels, _, err := unstructured.NestedStringMap(template, "metadata", "labels")
	if err != nil {
		l.Fatal(err)
	}
	l.made++
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.Labels = fmt.Sprintf("%s-%d", component.GetName(), l.made), given.Namespace, labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(component, kindOf(component))}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", l.made)
	pod.Spec.Containers = []corev1.Container{{Name: "main", ReadinessProbe: &corev1.Probe{}, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": one}}}}
	pod.Status.Phase, pod.Status.StartTime = corev1.PodPending, &metav1.Time{Time: l.now}
	node := &corev1.Node{}
	node.Name = pod.Spec.NodeName
	for _, object := range []client.Object{node, pod} {
		if err := l.api.Create(context.Background(), object); err != nil {
			l.Fatal(err)
		}
	}
}

func (l *life) component(i int) *unstructured.Unstructured {
	c := l.story.Components[i]
	component, _ := l.api.find(kindNamed(c.Kind), c.Name).(*unstructured.Unstructured)
	return component
}

func (l *life) podsOf(component int) []*corev1.Pod {
	return slices.DeleteFunc(l.api.pods(), func(pod *corev1.Pod) bool {
		return pod.Labels[v1beta2.AppWrapperComponentLabel] != strconv.Itoa(component)
	})
}

// repeats is how often whoever watches the devices says that a pod is idle.
const repeats = 5 * time.Minute

// watchDevices plays them.
func (l *life) watchDevices() (moved bool) {
	for _, pod := range l.api.pods() {
		idle, said := l.rests[pod.Name] && pod.Status.Phase == corev1.PodRunning, idleSince(pod)
		if l.blind || idle != said.IsZero() && l.now.Before(idleSeen(pod).Add(repeats)) || !idle && said.IsZero() {
			continue
		}
		moved = true
		l.api.change(pod, func(o client.Object) { sayIdle(o.(*corev1.Pod), idle, said, l.now) })
	}
	return moved
}

func sayIdle(pod *corev1.Pod, idle bool, since, now time.Time) {
	others := slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1beta2.PodIdleCondition })
	pod.Status.Conditions = slices.Clip(others)
	if !idle {
		return
	}
	if since.IsZero() {
		since = now
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: v1beta2.PodIdleCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: since}, LastProbeTime: metav1.Time{Time: now},
	})
}
