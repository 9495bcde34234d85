// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mlbatch/mlbatch/controller/runschema"
)

const (
	oldAPIServer = "../test/oldapiserver"
	// before134 is of the newest minor version for which the amounts of codeflare.dev have another rule.
	before134 = "v1.33.9-gke.100"
	since134  = "v1.34.0"
)

// An old API server compiles the rules and estimates what they cost with the libraries of its time.
func TestTheOldestKubernetesAcceptsEveryCRD(t *testing.T) {
	if library := fmt.Sprintf("k8s.io/apiextensions-apiserver v0.%d.", oldestMinor); !strings.Contains(string(must(os.ReadFile(filepath.Join(oldAPIServer, "go.mod")))(t)), library) {
		t.Fatalf("%s does not require %s", oldAPIServer, library)
	}
	crds := everyPartOn(t, fmt.Sprintf("v1.%d.0", oldestMinor))["CustomResourceDefinition"]
	judge := exec.CommandContext(t.Context(), "go", "run", ".")
	judge.Dir = oldAPIServer
	judge.Stdin = strings.NewReader(strings.Join(crds, "\n---\n"))
	said, err := judge.CombinedOutput()
	if want := fmt.Sprintf("%d CRDs\n", len(crds)); err != nil || string(said) != want {
		t.Errorf("it says of %d CRDs: %v\n%s", len(crds), err, said)
	}
}

// Kubernetes 1.30 takes a CRD with such fields for another one than the stored one, whenever it is applied.
func TestFieldsAreSelectableSinceKubernetes131(t *testing.T) {
	for kubernetes, want := range map[string]int{"v1.30.14": 0, "v1.31.0": 1} {
		if got := len(definitionsOn(t, kubernetes)["workloads.kueue.x-k8s.io"].Versions[1].SelectableFields); got != want {
			t.Errorf("on %s %d fields of Workloads are selectable, want %d", kubernetes, got, want)
		}
	}
}

// JobSet's rule is written in another way than upstream, for the oldest Kubernetes.
func TestJobSetsRefuseNamespacesOfClaims(t *testing.T) {
	props := definitionsOn(t, since134)["jobsets.jobset.x-k8s.io"].Versions[0].Schema.OpenAPIV3Schema
	policies := props.Properties["spec"].Properties["volumeClaimPolicies"].Items.Schema
	for namespace, want := range map[string]string{"": "", "blue": "namespace cannot be set for VolumeClaimPolicies templates"} {
		claim := map[string]any{"metadata": map[string]any{"name": "a", "namespace": namespace}}
		problems := problemsOf(t, policies, nil, map[string]any{"templates": []any{claim}})
		if refused := len(problems) > 0; refused != (want != "") || refused && !strings.HasSuffix(problems.ToAggregate().Error(), want) {
			t.Errorf("of a claim in namespace %q it says %v, want %q", namespace, problems, want)
		}
	}
}

// anAmount is the beginning of the rule's sentence.
const anAmount = "an amount is not negative and has at most 15 digits"

// amounts are values, and what an API server before 1.34 says of them. Others always say the sentence.
var amounts = map[any]string{
	int64(0): "", int64(8): "", int64(1e15): "", "0": "", "+1": "", ".5": "", "1.": "", "500m": "", "1.5Gi": "", "1e3": "", "1E+15": "", "1e-9": "", "8E": "",
	"123456789012345.123456789Ki": "",

	int64(-1): anAmount, int64(1e15) + 1: anAmount, "-1": anAmount, "-1Gi": anAmount, "": anAmount, "many": anAmount, "Gi": anAmount,
	"8GB": anAmount, "8 Gi": anAmount, "1,5": anAmount, "1\n": anAmount, "½": anAmount, "1Gi½": anAmount,

	"1234567890123456": "should match", "1.0123456789": "should match", "1e1.5": "should match", "1e2000000000": "should match",
	"1e123": "should match", "1.2.3": "should match", "1Gi2": "should match", "+": "should match", "1e": "should match", "8ki": "should match",
}

func TestKubernetesBefore134RefusesTheSameAmounts(t *testing.T) {
	before, since := amountOn(t, before134), amountOn(t, since134)
	for amount, says := range amounts {
		t.Run(fmt.Sprintf("%T %v", amount, amount), func(t *testing.T) {
			old := problemsOf(t, before, nil, amount)
			if refused := len(old) > 0; refused != (says != "") || refused && !strings.Contains(old.ToAggregate().Error(), says) {
				t.Errorf("before 1.34: %v\nwant %q", old, says)
			}
			problems := problemsOf(t, since, nil, amount)
			if refused := len(problems) > 0; refused != (says != "") || refused && !strings.Contains(problems.ToAggregate().Error(), anAmount) {
				t.Errorf("since 1.34: %v", problems)
			}
		})
	}
}

// amountOn is the schema of an amount, which is the same in all kinds.
func amountOn(t *testing.T, kubernetes string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var first *apiextensionsv1.JSONSchemaProps
	found := 0
	for name, spec := range definitionsOn(t, kubernetes) {
		if spec.Group != "codeflare.dev" {
			continue
		}
		for at, amount := range amountsIn(name, *spec.Versions[0].Schema.OpenAPIV3Schema) {
			if found++; first == nil {
				first = &amount
			}
			if amount.Pattern != first.Pattern || amount.XValidations[0].Rule != first.XValidations[0].Rule {
				t.Errorf("%s is judged in another way: %s %s", at, amount.Pattern, amount.XValidations[0].Rule)
			}
		}
	}
	if found != 9 {
		t.Fatalf("there are %d amounts on %s", found, kubernetes)
	}
	return first
}

// amountsIn are the amounts in a schema, by their paths. Those of a status, which the controller writes, have no rule.
func amountsIn(at string, props apiextensionsv1.JSONSchemaProps) map[string]apiextensionsv1.JSONSchemaProps {
	all := map[string]apiextensionsv1.JSONSchemaProps{}
	if props.XIntOrString && len(props.XValidations) > 0 {
		all[at] = props
	}
	children := map[string]apiextensionsv1.JSONSchemaProps{}
	for name, child := range props.Properties {
		children["."+name] = child
	}
	if props.Items != nil {
		children["[]"] = *props.Items.Schema
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		children["[*]"] = *props.AdditionalProperties.Schema
	}
	for name, child := range children {
		for path, amount := range amountsIn(at+name, child) {
			all[path] = amount
		}
	}
	return all
}

// Since 1.34, all kinds are as they are generated.
func TestKubernetesSince134HasTheGeneratedRules(t *testing.T) {
	generated := must(runschema.CRDs())(t)
	for name, spec := range definitionsOn(t, since134) {
		if spec.Group != "codeflare.dev" {
			continue
		}
		if diff := cmp.Diff(generated[spec.Names.Kind].Spec.Versions, spec.Versions); diff != "" {
			t.Errorf("%s is not as generated:\n%s", name, diff)
		}
	}
}
