// SPDX-License-Identifier: Apache-2.0

// Package slot says which place of an object's work a pod has. It is the same place for the pod of a bare object, for
// the pod of a wrapped one, and for the pod that replaces it.
package slot

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slot is a place. Pods of a set have the same template. Index is empty if its pods cannot be told apart.
type Slot struct{ Set, Index string }

func (s Slot) String() string { return strings.TrimSuffix(s.Set+"/"+s.Index, "/") }

// rules say which labels name the set and the index, for pods that have the first label. The first rule that fits
// decides.
var rules = []struct{ set, index []string }{
	{[]string{"jobset.sigs.k8s.io/replicatedjob-name"}, []string{"jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"}},
	{[]string{"training.kubeflow.org/replica-type"}, []string{"training.kubeflow.org/replica-index"}},
	{[]string{"ray.io/group"}, nil},
	{[]string{"batch.kubernetes.io/job-name"}, []string{"batch.kubernetes.io/job-completion-index"}},
	{[]string{"apps.kubernetes.io/pod-index"}, []string{"apps.kubernetes.io/pod-index"}},
}

const (
	workerIndex = "leaderworkerset.sigs.k8s.io/worker-index"
	groupIndex  = "leaderworkerset.sigs.k8s.io/group-index"
)

// Of returns the slot of a pod.
func Of(pod *corev1.Pod) Slot {
	if worker, ok := pod.Labels[workerIndex]; ok {
		if worker == "0" {
			return Slot{"leader", pod.Labels[groupIndex]}
		}
		return Slot{"worker", pod.Labels[groupIndex] + "." + worker}
	}
	for _, r := range rules {
		set, ok := pod.Labels[r.set[0]]
		if !ok {
			continue
		}
		var index []string
		for _, label := range r.index {
			if value := pod.Labels[label]; value != "" {
				index = append(index, value)
			}
		}
		if r.set[0] == "apps.kubernetes.io/pod-index" {
			set = owner(pod)
		}
		return Slot{set, strings.Join(index, ".")}
	}
	return Slot{Set: owner(pod)}
}

func owner(pod *corev1.Pod) string {
	if o := metav1.GetControllerOf(pod); o != nil && o.Kind != "AppWrapper" { // which owns what is a Pod itself when it is bare
		return strings.ToLower(o.Kind)
	}
	return cmp.Or(pod.Name, "pod")
}

// Number is the index within the set that tells a pod what to do: the last number of the slot. It is 0 for pods that
// cannot be told apart.
func (s Slot) Number() int {
	parts := strings.Split(s.Index, ".")
	n, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil {
		return 0
	}
	return n
}
