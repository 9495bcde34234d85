// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// podSetsOf returns the pod sets of a rendered job with their resource requests.
func podSetsOf(aw *v1beta2.AppWrapper) ([]quota.PodSet, error) {
	pods, err := admissionrules.Decode(aw).Pods()
	if err != nil {
		return nil, fmt.Errorf("cannot read the pods of the rendered job: %w", err)
	}
	var all []quota.PodSet
	for _, p := range pods {
		spec := p.Template.Spec
		requests := resource.PodRequests(&corev1.Pod{Spec: spec}, resource.PodResourcesOptions{})
		all = append(all, quota.PodSet{Count: int64(p.Count), Requests: requests, PriorityClass: spec.PriorityClassName})
	}
	return all, nil
}
