// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Surroundings are what the API server adds to the requests of pods in a namespace.
type Surroundings struct {
	LimitRanges []corev1.LimitRange
	// Overheads has what the pods of a RuntimeClass request in addition.
	Overheads map[string]corev1.ResourceList
}

// requested is what the API server and the scheduler count for a pod of the template.
func (s Surroundings) requested(template *corev1.PodTemplateSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	limitsAreRequests(&pod.Spec)
	podLevelRequests(pod)
	s.addDefaults(&pod.Spec, more)
	if class := pod.Spec.RuntimeClassName; class != nil {
		merge(&pod.Spec.Overhead, s.Overheads[*class], more)
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// counted is what Kueue counts for a pod of the template if an AppWrapper wraps it. Kueue 0.19 sees neither side-cars
// in it, which are init containers to it, nor what the pod requests as a whole, nor its RuntimeClass. And to Kueue a
// default of the namespace comes before a limit, which to the API server is a request
// (tools/artifacts/components/kueue/podsets has the comparison).
func (s Surroundings) counted(template *corev1.PodTemplateSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	pod.Spec.Resources = nil
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].RestartPolicy = nil
	}
	s.addDefaults(&pod.Spec, less)
	limitsAreRequests(&pod.Spec)
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// eachContainer calls what is given with the resources of all containers.
func eachContainer(spec *corev1.PodSpec, do func(*corev1.ResourceRequirements)) {
	for i := range spec.InitContainers {
		do(&spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		do(&spec.Containers[i].Resources)
	}
}

func limitsAreRequests(spec *corev1.PodSpec) {
	eachContainer(spec, func(r *corev1.ResourceRequirements) { merge(&r.Requests, r.Limits, keep) })
}

// podLevelRequests are those that the API server gives a pod whose limits are for all containers together.
func podLevelRequests(pod *corev1.Pod) {
	whole := pod.Spec.Resources
	if whole == nil || len(whole.Limits) == 0 {
		return
	}
	together := resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if amount, some := together[name]; some {
			merge(&whole.Requests, corev1.ResourceList{name: amount}, keep)
		}
	}
	merge(&whole.Requests, whole.Limits, keep)
}

// addDefaults gives containers what the LimitRanges say. If several say something, nobody knows which of them it will
// be: choose says.
func (s Surroundings) addDefaults(spec *corev1.PodSpec, choose choice) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.LimitRanges {
		for _, item := range s.LimitRanges[i].Spec.Limits {
			if item.Type == corev1.LimitTypeContainer {
				merge(&requests, item.DefaultRequest, choose)
				merge(&limits, item.Default, choose)
			}
		}
	}
	eachContainer(spec, func(r *corev1.ResourceRequirements) {
		merge(&r.Requests, requests, keep)
		merge(&r.Limits, limits, keep)
	})
}

// least is what a container must request at least.
func (s Surroundings) least() corev1.ResourceList {
	least := corev1.ResourceList{}
	for i := range s.LimitRanges {
		for _, item := range s.LimitRanges[i].Spec.Limits {
			if item.Type == corev1.LimitTypeContainer {
				merge(&least, item.Min, more)
			}
		}
	}
	return least
}

// choice tells, of an amount that is there and is compared with another one, whether it stays.
type choice func(compared int) bool

func keep(int) bool          { return true }
func more(compared int) bool { return compared >= 0 }
func less(compared int) bool { return compared <= 0 }

// merge adds amounts. Of two amounts for one resource it leaves the chosen one.
func merge(into *corev1.ResourceList, amounts corev1.ResourceList, choose choice) {
	for name, amount := range amounts {
		if there, found := (*into)[name]; found && choose(there.Cmp(amount)) {
			continue
		}
		if *into == nil {
			*into = corev1.ResourceList{}
		}
		(*into)[name] = amount.DeepCopy()
	}
}
