// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// made is an object that a Run makes.
type made struct{ kind, name string }

// If two AppWrappers made an object of the same name, the second would fail when it has its quota. That
// two AppWrappers have one name is found before.
func TestNoRunMakesAnObjectOfAnother(t *testing.T) {
	first := map[made]string{}
	names := map[string]bool{}
	for _, what := range []string{"broker", "code", "command", "gang", "nodes", "queue"} {
		names["x-"+what] = true
	}
	for _, archetype := range archetypes {
		for object, by := range madeBy(t, archetype.change, "x") {
			first[object] = by
			names[object.name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if len(validation.IsDNS1035Label(name)) > 0 {
			continue // no Run is called so
		}
		for _, archetype := range archetypes {
			for object, by := range madeBy(t, archetype.change, name) {
				if other := first[object]; other != "" && other != by {
					t.Errorf("the AppWrappers %s and %s both make the %s %s", other, by, object.kind, object.name)
				}
			}
		}
	}
}

// madeBy is what the Run of a name makes, each by an AppWrapper.
func madeBy(t *testing.T, archetype func(*runplan.Input), name string) map[made]string {
	t.Helper()
	in := matrixInput("md")
	archetype(&in)
	in.Run.Name = name
	if in.Application.Spec.Command != "" {
		in.Application.Spec.Code = []v1alpha1.CodeFile{{Name: "main.py"}}
	}
	plans, problems := runplan.Plans(in)
	if len(plans) == 0 {
		t.Fatal(problems)
	}
	all := map[made]string{}
	for _, planned := range plans {
		for _, component := range planned.AppWrapper.Spec.Components {
			for _, object := range objectsOf(t, component) {
				all[object] = planned.AppWrapper.Name
			}
		}
	}
	return all
}

// objectsOf are a component, and the Services that its operator makes for it.
func objectsOf(t *testing.T, component v1beta2.AppWrapperComponent) []made {
	t.Helper()
	template, err := admissionrules.Template(&component)
	if err != nil {
		t.Fatal(err)
	}
	name := template.GetName()
	all := []made{{template.GetKind(), name}}
	switch template.GetKind() {
	case "JobSet":
		subdomain, _, _ := unstructured.NestedString(template.Object, "spec", "network", "subdomain")
		if subdomain == "" {
			subdomain = name
		}
		all = append(all, made{"Service", subdomain})
	case "PyTorchJob":
		all = append(all, made{"PodGroup", name}, made{"Service", name + "-master-0"}, made{"Service", name + "-worker-0"})
	case "RayJob", "RayCluster":
		all = append(all, made{"Service", name + "-head-svc"})
	}
	return all
}
