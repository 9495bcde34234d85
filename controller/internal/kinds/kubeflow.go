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

// kubeflowJob is a job whose spec has a field with a pod template for each role. Its pod sets
// are in the order of these roles, and it reports its end with conditions. Each of its pods has a container of this
// name, in which the operator writes what the program must know, unless the name is empty.
func kubeflowJob(version, kind, field, container string, roles ...string) Kind {
	return Kind{
		GVK: schema.GroupVersionKind{Group: "kubeflow.org", Version: version, Kind: kind},
		podSets: func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
			return rolePodSets(object, field, roles)
		},
		uncounted:   func(object map[string]any) error { return rolesOfNoPods(object, field) },
		verdict:     verdictFromConditions("Succeeded", "Failed"),
		finalReason: kubeflowDeadline,
		derived:     func(object map[string]any) []Derived { return roleServices(object, field) },
		suspended:   suspendedBy("spec.runPolicy.suspend", "spec.runPolicy.managedBy"),
		faults:      func(object map[string]any) []Fault { return wrongRestarts(object, version, field) },
		container:   container,
	}
}

// roleServices: each pod has a Service of its name, and the operator does nothing else before it has made them.
func roleServices(object map[string]any, field string) []Derived {
	var names []Derived
	for _, role := range slices.Sorted(maps.Keys(withTemplate(object, field))) {
		count := number(object, "spec", field, role, "replicas")
		names = append(names, Derived{
			Suffix: "-" + strings.ToLower(role) + last(count), Of: "the Service of its last " + role, Rule: ServiceName,
		})
	}
	return names
}

// wrongRestarts: the operators write this policy into the pods, over the one of the template.
func wrongRestarts(object map[string]any, version, field string) (faults []Fault) {
	policies := []string{"", "Always", "OnFailure", "Never", "ExitCode"}
	if version == "v2beta1" {
		policies = []string{"", "OnFailure", "Never"}
	}
	for _, role := range slices.Sorted(maps.Keys(withTemplate(object, field))) {
		if policy := text(object, "spec", field, role, "restartPolicy"); !slices.Contains(policies, policy) {
			faults = append(faults, Fault{Path: "spec." + field + "." + role + ".restartPolicy", Value: policy, Why: "must be one of: " + strings.Join(policies[1:], ", ")})
		}
	}
	return faults
}

func (k Kind) with(volumes func(map[string]any) []string) Kind {
	k.volumes = volumes
	return k
}

func (k Kind) namedBy(derived func(map[string]any) []Derived) Kind {
	k.derived = derived
	return k
}

// rolesOfNoPods: the operators create one pod of a role that has no replicas.
func rolesOfNoPods(object map[string]any, field string) error {
	for _, role := range slices.Sorted(maps.Keys(withTemplate(object, field))) {
		path := []string{"spec", field, role, "replicas"}
		if count, found, err := integer(object, path...); err == nil && found && count < 1 {
			return fmt.Errorf("%s cannot be %d, because the operator would create one pod that has no quota: leave out the role %s", strings.Join(path, "."), count, role)
		}
	}
	return nil
}

// spelledAsKueueDoes tells whether all roles are spelled as Kueue expects; it finds no others.
func spelledAsKueueDoes(field string, roles ...string) func(map[string]any) bool {
	return func(object map[string]any) bool {
		for role := range withTemplate(object, field) {
			if !slices.Contains(roles, role) {
				return false
			}
		}
		return true
	}
}

func rolePodSets(object map[string]any, field string, roles []string) ([]v1beta2.AppWrapperPodSet, error) {
	spelt, err := spelling(object, field, roles)
	if err != nil {
		return nil, err
	}
	var podSets []v1beta2.AppWrapperPodSet
	for _, role := range roles {
		role, there := spelt[role]
		if !there {
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

// spelling maps each role to how the job spells it: the operator accepts "worker" for
// Worker. A role that no operator knows, or that occurs twice, is refused: its pods would be
// in no pod set and run without quota.
func spelling(object map[string]any, field string, roles []string) (map[string]string, error) {
	spelt := map[string]string{}
	for _, role := range slices.Sorted(maps.Keys(withTemplate(object, field))) {
		i := slices.IndexFunc(roles, func(known string) bool { return strings.EqualFold(known, role) })
		if i < 0 {
			return nil, fmt.Errorf("spec.%s has the role %q, which should be one of: %s", field, role, strings.Join(roles, ", "))
		}
		if twin, twice := spelt[roles[i]]; twice {
			return nil, fmt.Errorf("spec.%s has the roles %q and %q, which are the same role", field, twin, role)
		}
		spelt[roles[i]] = role
	}
	return spelt, nil
}

// withTemplate are the roles that make pods.
func withTemplate(object map[string]any, field string) map[string]bool {
	specs, _, _ := unstructured.NestedMap(object, "spec", field)
	found := map[string]bool{}
	for role := range specs {
		if present(specs, role, "template") {
			found[role] = true
		}
	}
	return found
}
