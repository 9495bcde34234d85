// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// overReservation: the pods of a holder use no more than its Workloads reserve.
func (l look) overReservation() []Finding {
	var counted []corev1.Pod
	for _, p := range l.running {
		if _, holds := l.claimed[l.holder(p)]; holds && !l.isRayHelper(p) {
			counted = append(counted, p)
		}
	}
	amounts := map[Holder][]string{}
	for _, e := range unexcused(l.usages(counted)) {
		amounts[e.Holder] = append(amounts[e.Holder], "it "+strings.TrimPrefix(e.Amounts, e.Holder.String()+" "))
	}
	var found []Finding
	for holder, sentences := range amounts {
		found = append(found, Finding{Object: holder.String(), Evidence: strings.Join(sentences, "; ")})
	}
	return found
}

// noQuota: a pod runs only while a Workload holds quota for it. There is one finding for all
// pods below the same object.
func (l look) noQuota() []Finding {
	pods, why := map[Holder][]string{}, map[Holder]string{}
	for _, p := range l.running {
		if _, holds := l.claimed[l.holder(p)]; holds || l.isRayHelper(p) {
			continue
		}
		chain := l.ancestry(p)
		root := chain[len(chain)-1].holder
		pods[root] = append(pods[root], p.Name)
		why[root] = l.whyNoQuota(p, chain)
	}
	var found []Finding
	for root, names := range pods {
		found = append(found, Finding{
			Object:   root.String(),
			Evidence: fmt.Sprintf("no Workload holds quota for pods %s: %s", few(slices.Sorted(slices.Values(names))), why[root]),
		})
	}
	return found
}

// whyNoQuota says what is wrong above a pod.
func (l look) whyNoQuota(p corev1.Pod, chain []object) string {
	for _, w := range l.Workloads {
		for _, o := range w.OwnerReferences {
			if !slices.ContainsFunc(chain, func(c object) bool { return c.uid == o.UID }) {
				continue
			}
			if quota.Finished(&w) {
				return fmt.Sprintf("Workload %s is finished and has released its quota", w.Name)
			}
			return fmt.Sprintf("Workload %s has no quota", w.Name)
		}
	}
	if above := chain[len(chain)-1].controller; above != nil {
		if len(chain) == longest {
			return "their controllers form a circle"
		}
		if reason := l.Unread[above.Kind]; reason != "" {
			return fmt.Sprintf("their controller %s %s cannot be read: %s", above.Kind, above.Name, reason)
		}
		return fmt.Sprintf("their controller %s %s does not exist", above.Kind, above.Name)
	}
	if name := p.Labels[workload.AppWrapperLabel]; name != "" && !l.hasAppWrapper(p.Namespace, name) {
		return fmt.Sprintf("their label names AppWrapper %s, which does not exist", name)
	}
	return "nothing that controls them has a Workload"
}

func (l look) hasAppWrapper(namespace, name string) bool {
	return slices.ContainsFunc(l.AppWrappers, func(aw workload.AppWrapper) bool { return aw.Namespace == namespace && aw.Name == name })
}

// rayHelper is the most that KubeRay requests for pods that it adds itself: the submitter of a
// RayJob (500m, 200Mi), and what removes a cluster's keys from Redis (200m, 256Mi).
var rayHelper = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
}

// isRayHelper reports whether KubeRay has made a pod that no template describes.
func (l look) isRayHelper(p corev1.Pod) bool {
	chain := l.ancestry(p)
	if len(chain) < 3 || chain[1].holder.Kind != "Job" || p.Labels[quota.PodSetLabel] != "" {
		return false
	}
	if kind := chain[2].holder.Kind; kind != "RayJob" && kind != "RayCluster" {
		return false
	}
	for name, amount := range maps.All(claim{}.requests(p)) {
		if most, known := rayHelper[name]; !known || amount.Cmp(most) > 0 {
			return false
		}
	}
	return true
}
