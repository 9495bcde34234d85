// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/resource"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// podSetsOf returns the pod sets of a rendered job with their resource requests.
func podSetsOf(aw *v1beta2.AppWrapper) ([]quota.PodSet, error) {
	decoded := admissionrules.Decode(aw)
	var all []quota.PodSet
	for i, template := range decoded.Templates {
		if err := decoded.Errors[i]; err != nil {
			return nil, fmt.Errorf("cannot read the pods of the rendered job: %w", err)
		}
		found, err := podSetsOfComponent(aw.Spec.Components[i], template)
		if err != nil {
			return nil, fmt.Errorf("cannot read the pods of the rendered job: %w", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func podSetsOfComponent(component v1beta2.AppWrapperComponent, template *unstructured.Unstructured) ([]quota.PodSet, error) {
	declared, err := admissionrules.PodSets(component.DeclaredPodSets, template)
	if err != nil {
		return nil, err
	}
	var all []quota.PodSet
	for _, podSet := range declared {
		pod, err := admissionrules.PodTemplate(template, podSet.Path)
		if err != nil {
			return nil, err
		}
		requests := resource.PodRequests(&corev1.Pod{Spec: pod.Spec}, resource.PodResourcesOptions{})
		all = append(all, quota.PodSet{Count: int64(podSet.Count()), Requests: requests, PriorityClass: pod.Spec.PriorityClassName})
	}
	return all, nil
}
