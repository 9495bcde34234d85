// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

// charts/policies_test.go has what is refused, for the policy and for this rule.
func TestPodsStayOnTheNodesOfTheirFlavor(t *testing.T) {
	team := map[string]string{"mlbatch-team-namespace": "true"}
	const toNode, toAll = "nodeName: node-1", "tolerations: [{key: a, operator: Exists}, {operator: Exists}]"
	for name, tc := range map[string]struct {
		spec      string
		namespace Namespace
		refused   bool
	}{
		"a node":                   {toNode, Namespace{Labels: team, Policies: Policies{Placement: true}}, true},
		"all nodes":                {toAll, Namespace{Labels: team, Policies: Policies{Placement: true}}, true},
		"nodes with a taint":       {"tolerations: [{key: nvidia.com/gpu, operator: Exists}]", Namespace{Labels: team, Policies: Policies{Placement: true}}, false},
		"a namespace of no team":   {toNode, Namespace{Policies: Policies{Placement: true}}, false},
		"a policy that is not set": {toNode, Namespace{Labels: team}, false},
	} {
		t.Run(name, func(t *testing.T) {
			aw := appWrapper(t, component(strings.Replace(job, "containers:", tc.spec+", containers:", 1)))
			if problems := Decode(aw).ValidateIn(tc.namespace); (len(problems) == 1) != tc.refused || len(problems) > 1 {
				t.Errorf("got %v", problems)
			}
		})
	}
}

// JobSet's webhook adds an anti-affinity over all namespaces to the pods of such Jobs.
func TestAJobSetKeepsNoOthersAway(t *testing.T) {
	const away = `annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}`
	jobSet := func(ofJobSet, ofJob, ofPod string) string {
		pod := strings.Replace(podTemplate, "{", "{metadata: {"+ofPod+"}, ", 1)
		return component(`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s, ` + ofJobSet + `}, spec: {replicatedJobs: [{name: j, template: {metadata: {` + ofJob + `}, spec: {template: ` + pod + `}}}]}}`)
	}
	namespace := Namespace{Labels: map[string]string{"mlbatch-team-namespace": "true"}, Policies: Policies{Placement: true}}
	for object, refused := range map[string]int{jobSet(away, "", ""): 1, jobSet("", away, ""): 1, jobSet("", "", away): 1, jobSet("", "", ""): 0} {
		if problems := Decode(appWrapper(t, object)).ValidateIn(namespace); len(problems) != refused {
			t.Errorf("%s: got %v", object, problems)
		}
		if problems := Decode(appWrapper(t, object)).ValidateIn(Namespace{}); len(problems) > 0 {
			t.Errorf("where the policy is disabled: got %v", problems)
		}
	}
}
