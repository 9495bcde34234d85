// SPDX-License-Identifier: Apache-2.0

package quotawatch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// train is the AppWrapper of all rows that need only one.
var train = types.NamespacedName{Namespace: "blue", Name: "train"}

// pod is a pod of train with one GPU, bound and running.
func pod(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: train.Namespace, UID: types.UID("uid-of-" + name),
			Labels:          map[string]string{workload.AppWrapperLabel: train.Name, podSetLabel: "train-0"},
			OwnerReferences: []metav1.OwnerReference{{UID: "first-attempt", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "gpu-0", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func ending(p *corev1.Pod)  { p.DeletionTimestamp = &metav1.Time{} }
func pending(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
func unbound(p *corev1.Pod) { p.Spec.NodeName = "" }
func ended(p *corev1.Pod)   { p.Status.Phase = corev1.PodFailed }
func of(attempt string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].UID = types.UID(attempt) }
}
func inPodSet(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[podSetLabel] = name }
}
func requesting(name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(amount)}
	}
}

// admitted is train's Workload, with quota for so many GPUs in one pod set.
func admitted(gpus string, changes ...func(*kueue.Workload)) kueue.Workload {
	w := kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: "appwrapper-train", Namespace: train.Namespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "workload.codeflare.dev/v1beta2", Kind: "AppWrapper", Name: train.Name}},
		},
		Status: kueue.WorkloadStatus{
			Conditions: []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue}},
			Admission: &kueue.Admission{ClusterQueue: "blue-cluster-queue", PodSetAssignments: []kueue.PodSetAssignment{
				assignment("train-0", "h100", "nvidia.com/gpu", gpus),
			}},
		},
	}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func assignment(podSet kueue.PodSetReference, flavor kueue.ResourceFlavorReference, name corev1.ResourceName, amount string) kueue.PodSetAssignment {
	return kueue.PodSetAssignment{
		Name:          podSet,
		Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{name: flavor},
		ResourceUsage: corev1.ResourceList{name: resource.MustParse(amount)},
	}
}

func evicted(w *kueue.Workload) { w.Status.Conditions[0].Status = metav1.ConditionFalse }
func finished(w *kueue.Workload) {
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
}
func deactivated(w *kueue.Workload) { w.Spec.Active = new(false) }
func ofAnother(w *kueue.Workload)   { w.OwnerReferences[0].Name = "other" }
func ofAJob(w *kueue.Workload)      { w.OwnerReferences[0].Kind = "Job" }
func with(more ...kueue.PodSetAssignment) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, more...)
	}
}

func TestWhatRunsIsHeldAgainstWhatWasAdmitted(t *testing.T) {
	for name, c := range map[string]struct {
		pods      []corev1.Pod
		workloads []kueue.Workload
		want      []string
		excuse    Excuse
	}{
		"pods that use all of their quota are fine": {
			pods: []corev1.Pod{pod("a"), pod("b", pending)}, workloads: []kueue.Workload{admitted("2")},
		},
		"a pod beyond the quota is not": {
			pods: []corev1.Pod{pod("a"), pod("b", pending)}, workloads: []kueue.Workload{admitted("1")},
			want: []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"pods that have no node yet, or have ended, use nothing": {
			pods: []corev1.Pod{pod("a"), pod("b", unbound, pending), pod("c", ended)}, workloads: []kueue.Workload{admitted("1")},
		},
		"a pod that was told to end uses its GPU until it has": {
			pods: []corev1.Pod{pod("a", ending)}, workloads: []kueue.Workload{admitted("1", evicted)},
			want: []string{
				"AppWrapper blue/train uses 1 nvidia.com/gpu with pods a, and no quota is held for that",
				"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that",
			},
		},
		"a pod that outlives its finished Workload has no quota": {
			pods: []corev1.Pod{pod("a", requesting("cpu", "0"))}, workloads: []kueue.Workload{admitted("1", finished)},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
		"others' Workloads do not help": {
			pods: []corev1.Pod{pod("a", requesting("cpu", "0"))}, workloads: []kueue.Workload{admitted("1", ofAnother), admitted("1", ofAJob)},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
		"a pod of no pod set was not counted by Kueue": {
			pods: []corev1.Pod{pod("a", inPodSet(""), requesting("cpu", "0"))}, workloads: []kueue.Workload{admitted("1")},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
		"a resource that was not assigned was not counted": {
			pods: []corev1.Pod{pod("a", requesting("cpu", "1"))}, workloads: []kueue.Workload{admitted("1")},
			want: []string{"AppWrapper blue/train uses 1 cpu with pods a, and no quota is held for that"},
		},
		"quota for pods is quota": {
			pods: []corev1.Pod{pod("a"), pod("b")},
			workloads: []kueue.Workload{admitted("2", func(w *kueue.Workload) {
				a := &w.Status.Admission.PodSetAssignments[0]
				a.Flavors["pods"], a.ResourceUsage["pods"] = "h100", resource.MustParse("1")
			})},
			want: []string{"AppWrapper blue/train uses 2 pods with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"what one flavor has left does not help another": {
			pods:      []corev1.Pod{pod("a"), pod("b", inPodSet("train-1")), pod("c", inPodSet("train-1"))},
			workloads: []kueue.Workload{admitted("2", with(assignment("train-1", "a100", "nvidia.com/gpu", "1")))},
			want:      []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods b, c, and 1 of flavor a100 are held for it in blue-cluster-queue"},
		},
		"pod sets of one flavor share it": {
			pods:      []corev1.Pod{pod("a"), pod("b", inPodSet("train-1"))},
			workloads: []kueue.Workload{admitted("1", with(assignment("train-1", "h100", "nvidia.com/gpu", "1")))},
		},
		"a pod may end beside the one that its controller made in its place": {
			pods: []corev1.Pod{pod("a", ending), pod("b")}, workloads: []kueue.Workload{admitted("1")},
			want:   []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
			excuse: Replaced,
		},
		"a pod may not end beside one of the next attempt": {
			pods: []corev1.Pod{pod("a", ending), pod("b", of("second-attempt"))}, workloads: []kueue.Workload{admitted("1")},
			want: []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"a pod that ends does not excuse two in its place": {
			pods: []corev1.Pod{pod("a", ending), pod("b"), pod("c")}, workloads: []kueue.Workload{admitted("1")},
			want: []string{"AppWrapper blue/train uses 3 nvidia.com/gpu with pods a, b, c, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"a replaced pod does not excuse that there is no quota": {
			pods:      []corev1.Pod{pod("a", ending, requesting("cpu", "0")), pod("b", requesting("cpu", "0"))},
			workloads: []kueue.Workload{admitted("1", evicted)},
			want:      []string{"AppWrapper blue/train uses 2 pods with pods a, b, and no quota is held for that"},
		},
		"a deactivated Workload's quota is free before its pods know": {
			pods: []corev1.Pod{pod("a")}, workloads: []kueue.Workload{admitted("1", deactivated)},
			want:   []string{"AppWrapper blue/train uses 1 nvidia.com/gpu with pods a, and 0 of flavor h100 are held for it in blue-cluster-queue"},
			excuse: Deactivated,
		},
		"a deactivated Workload excuses no more than it had": {
			pods: []corev1.Pod{pod("a"), pod("b")}, workloads: []kueue.Workload{admitted("1", deactivated)},
			want: []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 0 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"once a deactivated Workload has given it back, nothing excuses a pod": {
			pods: []corev1.Pod{pod("a", requesting("cpu", "0"))}, workloads: []kueue.Workload{admitted("1", deactivated, evicted)},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want []Finding
			for _, excess := range c.want {
				want = append(want, Finding{AppWrapper: train, Excess: excess, Excuse: c.excuse})
			}
			got := Moment{Pods: c.pods, Workloads: c.workloads}.Findings()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
