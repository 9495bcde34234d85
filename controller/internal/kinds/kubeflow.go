// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// kubeflowJob is a job whose spec has a field with a pod template for each role. Its
// pod sets are in the order of the roles given here, and conditions tell its end.
func kubeflowJob(version, kind, field string, roles ...string) Kind {
	return Kind{
		GVK: schema.GroupVersionKind{Group: "kubeflow.org", Version: version, Kind: kind},
		podSets: func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
			return rolePodSets(object, field, roles)
		},
		verdict: verdictFromConditions("Succeeded", "Failed"),
	}
}

func rolePodSets(object map[string]any, field string, roles []string) ([]v1beta2.AppWrapperPodSet, error) {
	if err := checkRoles(object, field, roles); err != nil {
		return nil, err
	}
	var podSets []v1beta2.AppWrapperPodSet
	for _, role := range roles {
		if !present(object, "spec", field, role, "template") {
			continue
		}
		count, err := replicas(object, "spec", field, role, "replicas")
		if err != nil {
			return nil, err
		}
		podSets = append(podSets, v1beta2.AppWrapperPodSet{
			Path:        "template.spec." + field + "." + role + ".template",
			Replicas:    count,
			Annotations: map[string]string{v1beta2.PodSetAnnotationTASPodIndexLabel: "training.kubeflow.org/replica-index"},
		})
	}
	return podSets, nil
}

// checkRoles refuses roles of another spelling. The operator takes "worker" for Worker,
// and its pods would be in no pod set, so they would run without quota.
func checkRoles(object map[string]any, field string, roles []string) error {
	specs, _, _ := unstructured.NestedMap(object, "spec", field)
	for _, role := range slices.Sorted(maps.Keys(specs)) {
		if !slices.Contains(roles, role) && present(specs, role, "template") {
			return fmt.Errorf("spec.%s has the role %q, which should be one of: %s", field, role, strings.Join(roles, ", "))
		}
	}
	return nil
}
