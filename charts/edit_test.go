// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	pinned "github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// harmless are resources that people with the roles edit and admin may write, and no policy judges at creation or at
// update: what they cost, or why nothing.
var harmless = map[string]string{
	"deployments.apps/rollback":            "no API server has it any more",
	"configmaps":                           "data of the team",
	"events":                               "nothing decides by them",
	"persistentvolumeclaims":               "storage has quota of its own: set a ResourceQuota. The API server bounds amounts",
	"pods/attach":                          "runs in a container that has quota",
	"pods/eviction":                        "as a deletion, with 30 seconds at most, or with the pod's own grace",
	"pods/exec":                            "runs in a container that has quota",
	"pods/portforward":                     "reaches a pod of the team",
	"pods/proxy":                           "reaches a pod of the team",
	"serviceaccounts":                      "has no rights but those that the writer may give",
	"serviceaccounts/token":                "a token that expires, of an account of the team",
	"services/proxy":                       "reaches a pod of the team",
	"horizontalpodautoscalers.autoscaling": "scales what Kueue does not count: Deployments and the like, which these roles may create in any size. One of an AppWrapper is reset for surplus pods. Work is scaled by nobody",
	"leases.coordination.k8s.io":           "no controller of the platform has one in a namespace of a team",
	"localsubjectaccessreviews.authorization.k8s.io": "a question",
	"ingresses.networking.k8s.io":                    "**open**: a Service of the team may be reached from the outside, if the cluster has an ingress controller",
	"networkpolicies.networking.k8s.io":              "**open**: may allow what the team's policy denies, also the metadata services of clouds",
	"poddisruptionbudgets.policy":                    "delays drains of administrators, and neither preemption nor Kueue",
	"resourceclaims.resource.k8s.io":                 "**open** in the pods that these roles create without quota. Kueue admits no work with claims that its configuration does not map",
	"resourceclaimtemplates.resource.k8s.io":         "**open** in the pods that these roles create without quota. Kueue admits no work with claims that its configuration does not map",
	"roles.rbac.authorization.k8s.io":                "gives no rights that the writer does not have: neither `control` nor those over nodes",
	"rolebindings.rbac.authorization.k8s.io":         "gives no rights that the writer does not have: neither `control` nor those over nodes",
}

// served: groups that no API server serves any more keep their place in the roles.
func served(group string) bool { return group != "extensions" }

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// Whatever Kubernetes' roles edit and admin may write in a namespace of a team is judged by a policy, or somebody has
// said why not. What is new in a later Kubernetes, or in a role of the charts, has to be decided about.
func TestWhatEditorsMayWriteIsJudgedOrDeclaredHarmless(t *testing.T) {
	rules := policiesWith(t, nil)
	var table strings.Builder
	table.WriteString("| what the roles `edit` and `admin` may write | judged at creation | judged at update | otherwise |\n|---|---|---|---|\n")
	left := maps.Clone(harmless)
	for _, resource := range writable(t) {
		created, updated := judges(rules, resource, admissionregistration.Create), judges(rules, resource, admissionregistration.Update)
		why, declared := harmless[resource]
		delete(left, resource)
		if (len(created) == 0 || len(updated) == 0) && !declared {
			t.Errorf("%s: judged at creation by %q and at update by %q: let a policy judge it, or declare it harmless", resource, created, updated)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", resource, strings.Join(created, ", "), strings.Join(updated, ", "), why)
	}
	for resource := range left {
		t.Errorf("%s is declared harmless, and nobody may write it", resource)
	}
	golden.Between(t, filepath.Join("..", "docs", "security.md"), "<!-- editors: written by go test ./charts -update -->\n", "<!-- end of editors -->", table.String())
}

// judges are the policies that judge an operation on a resource, as the page writes them.
func judges(policies map[string]admissionregistration.ValidatingAdmissionPolicy, resource string, operation admissionregistration.OperationType) (found []string) {
	for _, policy := range judging(policies, resource, operation) {
		found = append(found, "`"+strings.TrimPrefix(policy, "mlbatch-")+"`")
	}
	return found
}

// judging are the policies that judge an operation on RESOURCE or RESOURCE/SUBRESOURCE, with the group after a dot.
func judging(policies map[string]admissionregistration.ValidatingAdmissionPolicy, resource string, operation admissionregistration.OperationType) (found []string) {
	resource, group, _ := strings.Cut(resource, ".")
	if whole, sub, is := strings.Cut(group, "/"); is {
		resource, group = resource+"/"+sub, whole
	}
	name, sub, _ := strings.Cut(resource, "/")
	every := "*"
	if sub != "" {
		every = "*/" + sub
	}
	for _, policy := range slices.Sorted(maps.Keys(policies)) {
		if slices.ContainsFunc(policies[policy].Spec.MatchConstraints.ResourceRules, func(r admissionregistration.NamedRuleWithOperations) bool {
			return slices.Contains(r.Operations, operation) && slices.Contains(r.APIGroups, group) &&
				(slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, every) || sub != "" && slices.Contains(r.Resources, name+"/*"))
		}) && policy != "mlbatch-wrapped" { // few teams have it
			found = append(found, policy)
		}
	}
	return found
}

// writable are all resources that a rule of the roles edit and admin lets their holders write.
func writable(t *testing.T) []string {
	t.Helper()
	rules := kubernetesRules(t)
	for _, role := range clusterRolesWith(t, optionalParts()) {
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] == "true" || role.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] == "true" {
			rules = append(rules, role.Rules...)
		}
	}
	all := map[string]bool{}
	for _, rule := range rules {
		if !slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "*" || slices.Contains(writes, v) }) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if name, sub, is := strings.Cut(resource, "/"); served(group) && group != "" {
					resource = name + "." + group
					if is {
						resource += "/" + sub
					}
				}
				if served(group) {
					all[resource] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// kubernetesRules are those of Kubernetes itself, as testdata/roles has them.
func kubernetesRules(t *testing.T) (rules []rbac.PolicyRule) {
	t.Helper()
	if err := yaml.UnmarshalStrict(must(os.ReadFile(filepath.Join("testdata", "roles", "kubernetes.yaml")))(t), &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// The file has what the Kubernetes of this release puts into its roles.
func TestTheRolesAreThoseOfKubernetes(t *testing.T) {
	source, err := pinned.Source(t.Context(), pinned.Module("..", "kubernetes"), "k8s.io/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	text := must(os.ReadFile(filepath.Join(source, "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/cluster-roles.yaml")))(t)
	var roles struct{ Items []rbac.ClusterRole }
	if err := yaml.Unmarshal(text, &roles); err != nil {
		t.Fatal(err)
	}
	var rules []rbac.PolicyRule
	for _, role := range roles.Items {
		if role.Name == "system:aggregate-to-edit" || role.Name == "system:aggregate-to-admin" {
			rules = append(rules, role.Rules...)
		}
	}
	golden.Compare(t, filepath.Join("testdata", "roles", "kubernetes.yaml"), must(yaml.Marshal(rules))(t))
}
