// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/given"
)

func TestWhatRunsIsHeldAgainstWhatWasAdmitted(t *testing.T) {
	for name, c := range map[string]struct {
		pods      []corev1.Pod
		workloads []kueue.Workload
		want      []string
		excuse    Excuse
	}{
		"pods that use all of their quota are fine": {
			pods: []corev1.Pod{given.Pod("a"), given.Pod("b", given.Pending)}, workloads: []kueue.Workload{given.Admitted("2")},
		},
		"a pod beyond the quota is not": {
			pods: []corev1.Pod{given.Pod("a"), given.Pod("b", given.Pending)}, workloads: []kueue.Workload{given.Admitted("1")},
			want: []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"pods that have no node yet, or have ended, use nothing": {
			pods: []corev1.Pod{given.Pod("a"), given.Pod("b", given.Unbound, given.Pending), given.Pod("c", given.Ended)}, workloads: []kueue.Workload{given.Admitted("1")},
		},
		"a pod that was told to end uses its GPU until it has": {
			pods: []corev1.Pod{given.Pod("a", given.Ending)}, workloads: []kueue.Workload{given.Admitted("1", given.Evicted)},
			want: []string{
				"AppWrapper blue/train uses 1 nvidia.com/gpu with pods a, and no quota is held for that",
				"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that",
			},
		},
		"a pod that outlives its finished Workload has no quota": {
			pods: []corev1.Pod{given.Pod("a", given.Requesting("cpu", "0"))}, workloads: []kueue.Workload{given.Admitted("1", given.Finished)},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
		"others' Workloads do not help": {
			pods: []corev1.Pod{given.Pod("a", given.Requesting("cpu", "0"))}, workloads: []kueue.Workload{given.Admitted("1", given.OfAnother), given.Admitted("1", given.OfAJob)},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
		"a pod of no pod set was not counted by Kueue": {
			pods: []corev1.Pod{given.Pod("a", given.InPodSet(""), given.Requesting("cpu", "0"))}, workloads: []kueue.Workload{given.Admitted("1")},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
		"a resource that was not assigned was not counted": {
			pods: []corev1.Pod{given.Pod("a", given.Requesting("cpu", "1"))}, workloads: []kueue.Workload{given.Admitted("1")},
			want: []string{"AppWrapper blue/train uses 1 cpu with pods a, and no quota is held for that"},
		},
		"quota for pods is quota": {
			pods: []corev1.Pod{given.Pod("a"), given.Pod("b")},
			workloads: []kueue.Workload{given.Admitted("2", func(w *kueue.Workload) {
				a := &w.Status.Admission.PodSetAssignments[0]
				a.Flavors["pods"], a.ResourceUsage["pods"] = "h100", resource.MustParse("1")
			})},
			want: []string{"AppWrapper blue/train uses 2 pods with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"what one flavor has left does not help another": {
			pods:      []corev1.Pod{given.Pod("a"), given.Pod("b", given.InPodSet("train-1")), given.Pod("c", given.InPodSet("train-1"))},
			workloads: []kueue.Workload{given.Admitted("2", given.With(given.Assignment("train-1", "a100", "nvidia.com/gpu", "1")))},
			want:      []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods b, c, and 1 of flavor a100 are held for it in blue-cluster-queue"},
		},
		"pod sets of one flavor share it": {
			pods:      []corev1.Pod{given.Pod("a"), given.Pod("b", given.InPodSet("train-1"))},
			workloads: []kueue.Workload{given.Admitted("1", given.With(given.Assignment("train-1", "h100", "nvidia.com/gpu", "1")))},
		},
		"a pod may end beside the one that its controller made in its place": {
			pods: []corev1.Pod{given.Pod("a", given.Ending), given.Pod("b")}, workloads: []kueue.Workload{given.Admitted("1")},
			want:   []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
			excuse: Replaced,
		},
		"a pod may not end beside one of the next attempt": {
			pods: []corev1.Pod{given.Pod("a", given.Ending), given.Pod("b", given.OfAttempt("second-attempt"))}, workloads: []kueue.Workload{given.Admitted("1")},
			want: []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"a pod that ends does not excuse two in its place": {
			pods: []corev1.Pod{given.Pod("a", given.Ending), given.Pod("b"), given.Pod("c")}, workloads: []kueue.Workload{given.Admitted("1")},
			want: []string{"AppWrapper blue/train uses 3 nvidia.com/gpu with pods a, b, c, and 1 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"a replaced pod does not excuse that there is no quota": {
			pods:      []corev1.Pod{given.Pod("a", given.Ending, given.Requesting("cpu", "0")), given.Pod("b", given.Requesting("cpu", "0"))},
			workloads: []kueue.Workload{given.Admitted("1", given.Evicted)},
			want:      []string{"AppWrapper blue/train uses 2 pods with pods a, b, and no quota is held for that"},
		},
		"a deactivated Workload's quota is free before its pods know": {
			pods: []corev1.Pod{given.Pod("a")}, workloads: []kueue.Workload{given.Admitted("1", given.Deactivated)},
			want:   []string{"AppWrapper blue/train uses 1 nvidia.com/gpu with pods a, and 0 of flavor h100 are held for it in blue-cluster-queue"},
			excuse: Deactivated,
		},
		"a deactivated Workload excuses no more than it had": {
			pods: []corev1.Pod{given.Pod("a"), given.Pod("b")}, workloads: []kueue.Workload{given.Admitted("1", given.Deactivated)},
			want: []string{"AppWrapper blue/train uses 2 nvidia.com/gpu with pods a, b, and 0 of flavor h100 are held for it in blue-cluster-queue"},
		},
		"once a deactivated Workload has given it back, nothing excuses a pod": {
			pods: []corev1.Pod{given.Pod("a", given.Requesting("cpu", "0"))}, workloads: []kueue.Workload{given.Admitted("1", given.Deactivated, given.Evicted)},
			want: []string{"AppWrapper blue/train uses 1 pods with pods a, and no quota is held for that"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want []Excess
			for _, excess := range c.want {
				want = append(want, Excess{Holder: Holder{"AppWrapper", given.Train}, Amounts: excess, Excuse: c.excuse})
			}
			got := Moment{Pods: c.pods, Workloads: c.workloads}.Excesses()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
