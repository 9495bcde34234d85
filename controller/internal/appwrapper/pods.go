// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// attemptLabel is what pods of the present attempt say of it.
func attemptLabel(aw *v1beta2.AppWrapper) string {
	began := condition(aw.Status, v1beta2.ResourcesDeployed).LastTransitionTime
	return string(aw.UID) + "." + strconv.FormatInt(began.Unix(), 10)
}

// ofEarlierAppWrapper: the pod says that another AppWrapper made it. That had the same name.
func ofEarlierAppWrapper(aw *v1beta2.AppWrapper, pod *corev1.Pod) bool {
	label := pod.Labels[v1beta2.AttemptLabel]
	end := strings.LastIndexByte(label, '.')
	return end >= 0 && types.UID(label[:end]) != aw.UID
}

// withoutEarlierOnes leaves out pods of an earlier AppWrapper that have ended: others keep them, and they are nobody's.
// One that may still use quota stays: it must end before the quota is given back, whatever its label says.
func withoutEarlierOnes(aw *v1beta2.AppWrapper, pods []corev1.Pod) []corev1.Pod {
	earlier := func(pod corev1.Pod) bool {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		return ended && ofEarlierAppWrapper(aw, &pod)
	}
	if !slices.ContainsFunc(pods, earlier) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), earlier)
}

// componentOf goes by the label or, if another AppWrapper controller made the pod, by the
// pod's controller.
func (o *observation) componentOf(pod *corev1.Pod) int {
	if i, err := strconv.Atoi(pod.Labels[v1beta2.AppWrapperComponentLabel]); err == nil {
		return i
	}
	for i := range o.components {
		object := o.components[i].object
		if object != nil && (metav1.IsControlledBy(pod, object) || pod.UID == object.GetUID()) {
			return i
		}
	}
	return lifecycle.UnknownComponent
}

// podSetOf goes by the label. Without it, the pod may be of any pod set of its component.
func podSetOf(pod *corev1.Pod) int {
	if i, err := strconv.Atoi(pod.Labels[v1beta2.AppWrapperPodSetLabel]); err == nil {
		return i
	}
	return lifecycle.UnknownPodSet
}

// rankOf goes by the labels that number the pods of their kind. Caches drop them.
func (o *observation) rankOf(pod *corev1.Pod) string {
	i, j := o.componentOf(pod), podSetOf(pod)
	if o.aw == nil || i < 0 || i >= len(o.aw.Status.ComponentStatus) || j < 0 || j >= len(o.aw.Status.ComponentStatus[i].PodSets) {
		return ""
	}
	set := o.aw.Status.ComponentStatus[i].PodSets[j]
	var numbers []string
	for _, annotation := range []string{v1beta2.PodSetAnnotationTASSubGroupIndexLabel, v1beta2.PodSetAnnotationTASPodIndexLabel} {
		if number := pod.Labels[set.Annotations[annotation]]; number != "" {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 && set.Count() == 1 {
		return "0"
	}
	return strings.Join(numbers, "/")
}

func (o *observation) podOf(pod *corev1.Pod) lifecycle.Pod {
	var started time.Time
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
		if created := pod.CreationTimestamp.Time; started.Before(created) { // the clock of its node is behind
			started = created
		}
	}
	crashLoop, runsSince := crashLoopOf(pod)
	initSince, initEnded := initOf(pod)
	return lifecycle.Pod{
		CrashLoop:     crashLoop,
		RunsSince:     runsSince,
		Node:          pod.Spec.NodeName,
		Created:       pod.CreationTimestamp.Time,
		EndsBy:        ptr.Deref(pod.DeletionTimestamp, metav1.Time{}).Time,
		Interrupted:   interruptedAt(pod),
		Ended:         endOf(pod),
		Started:       started,
		InitSince:     initSince.Time,
		InitEnded:     initEnded.Time,
		NotReadySince: notReadySince(pod),
		IdleSince:     idleSince(pod),
		IdleSeen:      idleSeen(pod),
		Devices:       devicesOfPod(pod),
		Name:          pod.Name,
		Component:     o.componentOf(pod),
		PodSet:        podSetOf(pod),
		Rank:          o.rankOf(pod),
		Foreign:       ofEarlierAppWrapper(o.aw, pod),
		Phase:         pod.Status.Phase,
		Terminating:   !pod.DeletionTimestamp.IsZero(),
		Finalizers:    pod.Finalizers,
		ExitCodes:     exitCodes(pod),
		Failures:      failures(pod),
	}
}
