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

	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/golden"
)

// powers are what somebody who has taken over an operator could do in all namespaces.
var powers = []struct {
	title     string
	resources []string // each in its group, as group/resource
	verbs     []string
}{
	{"create pods", []string{"/pods", "apps/deployments", "apps/statefulsets", "apps/replicasets", "batch/jobs"}, []string{"create"}},
	{"run commands in pods", []string{"/pods/exec"}, []string{"create"}},
	{"read Secrets", []string{"/secrets"}, []string{"get", "list", "watch"}},
	{"write Roles", []string{"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings"}, []string{"create", "update", "patch"}},
	{"start queued work", []string{"workload.codeflare.dev/appwrappers"}, []string{"unsuspend"}},
	{"act as a controller", []string{"workload.codeflare.dev/appwrappers"}, []string{"control"}},
	{"change quota", []string{"kueue.x-k8s.io/clusterqueues", "kueue.x-k8s.io/workloads/status"}, []string{"create", "update", "patch"}},
	{"change nodes", []string{"/nodes"}, []string{"update", "patch", "delete"}},
}

// The page says what each operator could do, with the defaults and every part enabled.
func TestThePageSaysWhatATakenOperatorCouldDo(t *testing.T) {
	byAccount := rulesByAccount(t, optionalParts())
	var table strings.Builder
	table.WriteString("| service account |")
	for _, p := range powers {
		fmt.Fprintf(&table, " %s |", p.title)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(powers)) + "\n")
	for _, account := range slices.Sorted(maps.Keys(byAccount)) {
		fmt.Fprintf(&table, "| `%s` |", account)
		for _, p := range powers {
			table.WriteString(map[bool]string{true: " yes |", false: " |"}[hasPower(byAccount[account], p.resources, p.verbs)])
		}
		table.WriteString("\n")
	}
	golden.Between(t, filepath.Join("..", "docs", "security.md"),
		"<!-- powers: written by go test ./charts -update -->\n", "<!-- end of powers -->", table.String())
}

func hasPower(rules []rbac.PolicyRule, resources, verbs []string) bool {
	return slices.ContainsFunc(resources, func(resource string) bool {
		group, name, _ := strings.Cut(resource, "/")
		return slices.ContainsFunc(rules, func(rule rbac.PolicyRule) bool {
			return len(rule.ResourceNames) == 0 && includes(rule.APIGroups, group) && includes(rule.Resources, name) &&
				slices.ContainsFunc(verbs, func(verb string) bool { return includes(rule.Verbs, verb) })
		})
	})
}

func includes(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// rulesByAccount are the rules that ClusterRoleBindings of the platform give to its service
// accounts. The verb control is given to a list of subjects, which is not an operator's role.
func rulesByAccount(t *testing.T, values map[string]any) map[string][]rbac.PolicyRule {
	t.Helper()
	roles := clusterRolesWith(t, values)
	rendered, err := renderLight(t, here(t), "mlbatch", values)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]rbac.PolicyRule{}
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		if parse(t, document).Kind != "ClusterRoleBinding" {
			continue
		}
		var binding rbac.ClusterRoleBinding
		if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
			t.Fatal(err)
		}
		for _, subject := range binding.Subjects {
			if subject.Kind == "ServiceAccount" && subject.Namespace == namespace {
				found[subject.Name] = append(found[subject.Name], roles[binding.RoleRef.Name].Rules...)
			}
		}
	}
	return found
}

// Whom the profiles of OpenShift AI let act as controllers, the page names with a source.
func TestThePageNamesTheControllersOfOpenShiftAI(t *testing.T) {
	page := string(must(os.ReadFile(filepath.Join("..", "docs", "openshift-ai.md")))(t))
	for profile, want := range map[string]int{"openshift-ai": 8, "openshift-ai-own-kueue": 5} {
		theirs := 0
		for _, s := range controllersOf(t, values(t, must(setup.Profile(profile))(t))) {
			if s.Kind != "ServiceAccount" || s.Namespace == namespace {
				continue
			}
			theirs++
			if !strings.Contains(page, "\n| `"+s.Name+"`") {
				t.Errorf("docs/openshift-ai.md has no line for %s in %s", s.Name, s.Namespace)
			}
		}
		if theirs != want {
			t.Errorf("%s: %d service accounts act as controllers", profile, theirs)
		}
	}
}

// controllersOf are whom these values let act as controllers.
func controllersOf(t *testing.T, in map[string]any) []rbac.Subject {
	t.Helper()
	rendered := must(renderLight(t, here(t), "mlbatch", in))(t)
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		if o := parse(t, document); o.Kind != "ClusterRoleBinding" || o.Name != "mlbatch-control" {
			continue
		}
		var binding rbac.ClusterRoleBinding
		if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
			t.Fatal(err)
		}
		return binding.Subjects
	}
	t.Fatal("nobody acts as a controller")
	return nil
}
