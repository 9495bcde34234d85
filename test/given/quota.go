// SPDX-License-Identifier: Apache-2.0

package given

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Train is the AppWrapper of all rows that need only one.
var Train = types.NamespacedName{Namespace: "blue", Name: "train"}

// Pod is a pod of train with one GPU, bound and running.
func Pod(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Train.Namespace, UID: types.UID("uid-of-" + name),
			Labels:          map[string]string{v1beta2.AppWrapperLabel: Train.Name, "kueue.x-k8s.io/podset": "train-0"},
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

// Ending tells a pod to end.
func Ending(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }

// Pending is a pod that has a node and does not run yet.
func Pending(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }

// Unbound is a pod without a node.
func Unbound(p *corev1.Pod) { p.Spec.NodeName = "" }

// Ended is a pod that has failed.
func Ended(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }

// OfAttempt gives a pod another controller.
func OfAttempt(attempt string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].UID = types.UID(attempt) }
}

// InPodSet puts a pod into another pod set.
func InPodSet(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["kueue.x-k8s.io/podset"] = name }
}

// Requesting replaces what a pod requests.
func Requesting(name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(amount)}
	}
}

// Admitted is train's Workload, with quota for so many GPUs in one pod set.
func Admitted(gpus string, changes ...func(*kueue.Workload)) kueue.Workload {
	w := kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: "appwrapper-train", Namespace: Train.Namespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "workload.codeflare.dev/v1beta2", Kind: "AppWrapper", Name: Train.Name}},
		},
		Status: kueue.WorkloadStatus{
			Conditions: []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue}},
			Admission: &kueue.Admission{ClusterQueue: "blue-cluster-queue", PodSetAssignments: []kueue.PodSetAssignment{
				Assignment("train-0", "h100", "nvidia.com/gpu", gpus),
			}},
		},
	}
	for _, change := range changes {
		change(&w)
	}
	return w
}

// Assignment is the quota of one pod set.
func Assignment(podSet kueue.PodSetReference, flavor kueue.ResourceFlavorReference, name corev1.ResourceName, amount string) kueue.PodSetAssignment {
	return kueue.PodSetAssignment{
		Name:          podSet,
		Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{name: flavor},
		ResourceUsage: corev1.ResourceList{name: resource.MustParse(amount)},
	}
}

// Evicted takes the quota of a Workload back.
func Evicted(w *kueue.Workload) { w.Status.Conditions[0].Status = metav1.ConditionFalse }

// Finished is a Workload whose work has ended.
func Finished(w *kueue.Workload) {
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
}

// Deactivated is a Workload that an administrator has stopped.
func Deactivated(w *kueue.Workload) { w.Spec.Active = new(false) }

// OfAnother makes it the Workload of another AppWrapper.
func OfAnother(w *kueue.Workload) { w.OwnerReferences[0].Name = "other" }

// OfAJob makes it the Workload of a Job.
func OfAJob(w *kueue.Workload) { w.OwnerReferences[0].Kind = "Job" }

// With adds pod sets.
func With(more ...kueue.PodSetAssignment) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, more...)
	}
}
