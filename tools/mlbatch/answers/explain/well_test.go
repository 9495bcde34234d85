// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// Whatever the states of an AppWrapper and of its pods: nothing is known to be wrong only if it runs, its pods that
// have not ended are ready, and all their containers run.
func TestNothingIsWrongOnlyIfPodsAreReadyAndContainersRun(t *testing.T) {
	well := 0
	rapid.Check(t, func(r *rapid.T) {
		o := explain.Objects{Now: now, AppWrapper: drawWrapper(r)}
		runs, living := o.AppWrapper.Status.Phase == v1beta2.AppWrapperRunning, 0
		for range rapid.IntRange(0, 2).Draw(r, "pods") {
			pod := drawPod(r)
			o.Pods = append(o.Pods, pod)
			if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil {
				continue
			}
			living++
			runs = runs && pod.Status.Conditions[0].Status == corev1.ConditionTrue
			for _, s := range pod.Status.ContainerStatuses {
				runs = runs && s.State.Running != nil
			}
		}
		e := explain.Explain(o)
		if said := strings.Contains(explain.Text(e, now), "Nothing is known to be wrong"); said != e.Well && len(e.Causes) == 0 || said && (!runs || living == 0) {
			r.Fatalf("it says that nothing is wrong: %t, and it runs: %t, with %d pods", said, runs, living)
		} else if said {
			well++
		}
	})
	if well == 0 {
		t.Error("nothing was ever right")
	}
}

func drawWrapper(r *rapid.T) *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "blue", CreationTimestamp: metav1.Time{Time: now}}}
	aw.Status.Phase = rapid.SampledFrom([]v1beta2.AppWrapperPhase{v1beta2.AppWrapperRunning, v1beta2.AppWrapperRunning, v1beta2.AppWrapperResuming, v1beta2.AppWrapperSuspended, v1beta2.AppWrapperFailed}).Draw(r, "phase")
	ready := rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse}).Draw(r, "podsReady")
	aw.Status.Conditions = []metav1.Condition{{Type: string(v1beta2.PodsReady), Status: ready, Reason: "SufficientPodsReady", LastTransitionTime: metav1.Time{Time: now}}}
	aw.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{{Name: "train", Kind: "Job", APIVersion: "batch/v1", PodSets: []v1beta2.AppWrapperPodSet{{Path: "template.spec.template"}}}}
	return aw
}

func drawPod(r *rapid.T) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train-0", Namespace: "blue", CreationTimestamp: metav1.Time{Time: now}}}
	pod.Spec.NodeName = "n"
	if rapid.IntRange(0, 7).Draw(r, "ends") == 0 {
		pod.DeletionTimestamp = &metav1.Time{Time: now}
	}
	pod.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed, ""}).Draw(r, "pod")
	ready := rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}).Draw(r, "ready")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	for range rapid.IntRange(0, 2).Draw(r, "containers") {
		state := rapid.SampledFrom([]corev1.ContainerState{
			{Running: &corev1.ContainerStateRunning{}}, {Running: &corev1.ContainerStateRunning{}}, {Running: &corev1.ContainerStateRunning{}},
			{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, {Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}, {},
		}).Draw(r, "state")
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", State: state})
	}
	return pod
}
