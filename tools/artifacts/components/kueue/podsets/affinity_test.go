// SPDX-License-Identifier: Apache-2.0

package podsets

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/equality"
)

// Our controller adds to the node affinity of Workloads (docs/decisions/0018-other-nodes-from-kueue.md). If Kueue
// compared it with that of the AppWrapper, it would make such a Workload anew.
func TestAffinityIsNotCompared(t *testing.T) {
	asWritten := queue.PodSet{Name: "train-0", Count: 4, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}}
	changed := *asWritten.DeepCopy()
	changed.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"gpu-17"}},
		}}},
	}}}
	if !equality.ComparePodSets(&asWritten, &changed) {
		t.Error("Kueue compares the affinity")
	}
	if changed.Count = 5; equality.ComparePodSets(&asWritten, &changed) {
		t.Error("Kueue compares nothing")
	}
}
