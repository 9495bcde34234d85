// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"
)

// Such a team has nothing that makes pods but what is wrapped, whoever of it creates it.
func TestATeamOfAppWrappersOnlyCreatesNothingElse(t *testing.T) {
	policy := onePolicy(t, "wrapped")
	for kind, around := range templateOf {
		object := around("containers: [{image: a}]")
		name := unstructuredOf(t, object).GetKind()
		want := "this team creates AppWrappers and Runs only: put the " + name + " into an AppWrapper, as 'mlbatch pack' does"
		created := request{operation: admission.Create, object: object}
		if got := judge(t, policy, created, false); len(got) != 1 || got[0] != want {
			t.Errorf("%s created: want %q, got %q", kind, want, got)
		}
		if got := judge(t, policy, created, true); len(got) > 0 {
			t.Errorf("%s created by a controller: %q", kind, got)
		}
		touched := request{operation: admission.Update, object: annotated(object, "a: b"), old: object}
		if got := judge(t, policy, touched, false); len(got) > 0 {
			t.Errorf("%s that is there cannot be annotated: %q", kind, got)
		}
	}
}

// What is there may end, and not become more.
func TestUnwrappedWorkThatIsThereMayEnd(t *testing.T) {
	policy := onePolicy(t, "wrapped")
	for name, c := range map[string]struct {
		object, old string
		refused     bool
	}{
		"a PyTorchJob that is suspended": {startable["PyTorchJob"]("true", "a: b", "", ""), startable["PyTorchJob"]("false", "a: b", "", ""), false},
		"a Deployment that grows":        {workWith("apps/v1", "Deployment", "replicas: 9"), workWith("apps/v1", "Deployment", "replicas: 1"), true},
		"a CronJob with another program": {workWith("batch/v1", "CronJob", "jobTemplate: {spec: {n: 2}}"), workWith("batch/v1", "CronJob", "jobTemplate: {spec: {n: 1}}"), true},
		"what has no spec":               {`{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: r, labels: {a: b}}}`, `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: r}}`, false},
	} {
		got := judge(t, policy, request{operation: admission.Update, object: c.object, old: c.old}, false)
		if c.refused != (len(got) == 1) || len(got) > 1 {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// The policy is in force where the chart of teams says so, and nowhere by default.
func TestTeamsChooseToHaveAppWrappersOnly(t *testing.T) {
	var binding admissionregistration.ValidatingAdmissionPolicyBinding
	for _, document := range strings.Split(must(render(t, "mlbatch", nil))(t).Manifest, "\n---\n") {
		if o := parse(t, document); o.Kind == "ValidatingAdmissionPolicyBinding" && o.Name == "mlbatch-wrapped" {
			if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
				t.Fatal(err)
			}
		}
	}
	selector := binding.Spec.MatchResources.NamespaceSelector.MatchLabels
	quota := map[string]any{"default-flavor": map[string]any{"cpu": 1, "memory": "1Gi"}}
	for only, want := range map[bool]map[string]bool{false: {"blue": false, "red": true, "green": false}, true: {"blue": true, "red": true, "green": false}} {
		all := onboarded(t, "teams", map[string]any{"appWrappersOnly": only, "teams": []any{
			map[string]any{"name": "blue", "quota": quota},
			map[string]any{"name": "red", "quota": quota, "appWrappersOnly": true},
			map[string]any{"name": "green", "quota": quota, "appWrappersOnly": false},
		}})
		for team, chosen := range want {
			labels := all["Namespace//"+team].(*corev1.Namespace).Labels
			for label, value := range selector {
				if matches := labels[label] == value; matches != (chosen || label == "mlbatch-team-namespace") {
					t.Errorf("appWrappersOnly is %t, and the label %s of %s is %q", only, label, team, labels[label])
				}
			}
		}
	}
	if len(selector) != 2 {
		t.Errorf("the policy is in force in namespaces with %v", selector)
	}
}
