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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

// onboarded are the objects of a release of charts/teams, decoded as the API server does.
func onboarded(t *testing.T, release string, in map[string]any) map[string]any {
	t.Helper()
	rendered, err := packaging.Render(t.Context(), load(t, "teams"), release, namespace, "v1.34.0", in)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		o := parse(t, document)
		into := map[string]func() any{
			"Namespace":          func() any { return &corev1.Namespace{} },
			"ConfigMap":          func() any { return &corev1.ConfigMap{} },
			"LimitRange":         func() any { return &corev1.LimitRange{} },
			"ResourceQuota":      func() any { return &corev1.ResourceQuota{} },
			"NetworkPolicy":      func() any { return &networkingv1.NetworkPolicy{} },
			"Role":               func() any { return &rbacv1.Role{} },
			"RoleBinding":        func() any { return &rbacv1.RoleBinding{} },
			"ClusterRoleBinding": func() any { return &rbacv1.ClusterRoleBinding{} },
			"ResourceFlavor":     func() any { return &kueue.ResourceFlavor{} },
			"Cohort":             func() any { return &kueue.Cohort{} },
			"ClusterQueue":       func() any { return &kueue.ClusterQueue{} },
			"LocalQueue":         func() any { return &kueue.LocalQueue{} },
			"Topology":           func() any { return &kueue.Topology{} },

			"RunSizeConfiguration": func() any { return &v1alpha1.RunSizeConfiguration{} },
		}[o.Kind]()
		decode(t, document, into)
		all[o.Kind+"/"+o.Namespace+"/"+o.Name] = into
	}
	return all
}

// exampleTeams are all values files for teams in this repository.
func exampleTeams(t *testing.T) map[string]map[string]any {
	t.Helper()
	examples := map[string]map[string]any{}
	for _, pattern := range []string{"testdata/teams/*.in.yaml", "../setup/teams/*.yaml"} {
		for _, file := range must(filepath.Glob(pattern))(t) {
			examples[filepath.Base(file)] = values(t, must(os.ReadFile(file))(t))
		}
	}
	return examples
}

func TestExampleTeamsAreValidObjects(t *testing.T) {
	for name, in := range exampleTeams(t) {
		t.Run(name, func(t *testing.T) { onboarded(t, "teams", in) })
	}
}

// H-37: permission to create a LocalQueue must not give access to another team's quota.
func TestOnlyItsTeamsNamespaceUsesAClusterQueue(t *testing.T) {
	for name, in := range exampleTeams(t) {
		t.Run(name, func(t *testing.T) {
			all := onboarded(t, "teams", in)
			for _, o := range all {
				queue, ok := o.(*kueue.LocalQueue)
				if !ok {
					continue
				}
				behind := all["ClusterQueue//"+string(queue.Spec.ClusterQueue)].(*kueue.ClusterQueue)
				want := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: queue.Namespace}}
				if diff := cmp.Diff(want, behind.Spec.NamespaceSelector); diff != "" {
					t.Errorf("%s allows namespaces other than %s (-want +got)\n%s", behind.Name, queue.Namespace, diff)
				}
			}
		})
	}
}

// Administrators can choose the policy of older releases, see docs/decisions/0016.
func TestTheOlderPreemptionPolicyCanBeChosen(t *testing.T) {
	in := maps.Clone(exampleTeams(t)["shared-cluster.in.yaml"])
	in["preemption"] = map[string]any{"withinClusterQueue": "LowerOrNewerEqualPriority"}
	for id, o := range onboarded(t, "teams", in) {
		if q, is := o.(*kueue.ClusterQueue); is && q.Spec.Preemption.WithinClusterQueue != kueue.PreemptionPolicyLowerOrNewerEqualPriority {
			t.Errorf("%s has the policy %s", id, q.Spec.Preemption.WithinClusterQueue)
		}
	}
}

// What 'mlbatch run plan' assumes is what a cluster has.
func TestTheSizesOfRunsAreTheDefaultOnes(t *testing.T) {
	on := map[string]any{"controller": map[string]any{"runs": map[string]any{"enabled": true}}}
	got := onboarded(t, "teams", on)["RunSizeConfiguration//default"].(*v1alpha1.RunSizeConfiguration)
	if diff := cmp.Diff(runplan.DefaultSizes().Spec, got.Spec); diff != "" {
		t.Errorf("(-default +chart)\n%s", diff)
	}
	on["sizes"] = nil
	for name, in := range map[string]map[string]any{"without sizes": on, "without Runs": {}} {
		if _, made := onboarded(t, "teams", in)["RunSizeConfiguration//default"]; made {
			t.Errorf("%s there are sizes", name)
		}
	}
}

// The controller of Runs wraps what Plans have, in the namespaces of teams alone.
func TestTheControllerOfRunsHasWhatItNeedsWhereTeamsAre(t *testing.T) {
	roles := clusterRolesWith(t, map[string]any{"codeflare": map[string]any{"enabled": true}})
	here, everywhere, members := roles["mlbatch-runs"], roles["codeflare-manager-role"], roles["mlbatch-edit"]
	for _, resource := range runplan.Wrapped {
		if !allows(here, "wrap", resource.Group, resource.Resource) || allows(here, "create", resource.Group, resource.Resource) {
			t.Errorf("it must be able to wrap, and not to create, %s", resource.Resource)
		}
		if !allows(members, "create", resource.Group, resource.Resource) && !allows(members, "wrap", resource.Group, resource.Resource) {
			t.Errorf("members could have no Run with %s", resource.Resource)
		}
	}
	const group = "workload.codeflare.dev"
	for _, verb := range []string{"attribute", "control", "create", "delete"} {
		if !allows(here, verb, group, "appwrappers") || allows(everywhere, verb, group, "appwrappers") {
			t.Errorf("it must be able to %s AppWrappers where teams are, and nowhere else", verb)
		}
	}
	for _, verb := range []string{"attribute", "control", "unsuspend"} {
		if allows(members, verb, group, "appwrappers") {
			t.Errorf("members may %s AppWrappers", verb)
		}
	}
	for _, resource := range []string{"runs/status", "runsizeconfigurations"} {
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			if allows(members, verb, "codeflare.dev", resource) {
				t.Errorf("members may %s %s", verb, resource)
			}
		}
	}
	bound := onboarded(t, "teams", exampleTeams(t)["runs.in.yaml"])["RoleBinding/crimson/mlbatch-runs"].(*rbacv1.RoleBinding)
	if bound.RoleRef.Name != here.Name || len(bound.Subjects) != 1 || bound.Subjects[0].Name != "codeflare-controller-manager" || bound.Subjects[0].Namespace != "elsewhere" {
		t.Errorf("bound is %+v", bound)
	}
}

// A CRD that outlives its platform must not let members record an author that nobody checks.
func TestMembersMakeRunsOnlyWhereTheirAuthorIsRecorded(t *testing.T) {
	if allows(clusterRoles(t)["mlbatch-edit"], "create", "codeflare.dev", "runs") {
		t.Error("members may create Runs although no webhook records their author")
	}
}

// The controller makes the ClusterQueues, and removes them without the ConfigMap, so nothing must keep that.
// What it reads there is a test of controller/internal/slackqueue.
func TestSlackQueuesAreHandedToTheController(t *testing.T) {
	all := onboarded(t, "teams", exampleTeams(t)["slack-queues.in.yaml"])
	handed := all["ConfigMap/elsewhere/mlbatch-slack-queues"].(*corev1.ConfigMap)
	if names := slices.Sorted(maps.Keys(handed.Data)); !slices.Equal(names, []string{"slack-cluster-queue", "slack-of-products"}) || len(handed.Annotations) > 0 {
		t.Errorf("got %q, with annotations %v", names, handed.Annotations)
	}
	for name := range handed.Data {
		if _, made := all["ClusterQueue//"+name]; made {
			t.Errorf("the chart makes %s, too", name)
		}
	}
	for id, o := range onboarded(t, "teams", map[string]any{"slackQueues": nil}) {
		if _, is := o.(*corev1.ConfigMap); is {
			t.Errorf("without slack queues there is %s", id)
		}
	}
}

// A team that is removed from the list loses access, but its running work continues.
func TestRunningWorkSurvivesTheRemovalOfItsTeam(t *testing.T) {
	kept := []string{"Namespace", "ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "Topology"}
	rights := []string{"mlbatch-wrapped-secrets", "mlbatch-runs"} // without them the controllers could not end the work
	for _, example := range []string{"hierarchy.in.yaml", "topology.in.yaml", "runs.in.yaml"} {
		for id, o := range onboarded(t, "teams", exampleTeams(t)[example]) {
			kind, _, _ := strings.Cut(id, "/")
			annotations := o.(metav1.Object).GetAnnotations()
			keeps := annotations["helm.sh/resource-policy"] == "keep" && annotations["argocd.argoproj.io/sync-options"] == "Prune=false"
			if keeps != (slices.Contains(kept, kind) || slices.Contains(rights, o.(metav1.Object).GetName())) {
				t.Errorf("%s has annotations %v", id, annotations)
			}
		}
	}
}

// fifty are the values of fifty teams.
func fifty() []any {
	var teams []any
	for i := range 50 {
		teams = append(teams, map[string]any{
			"name": fmt.Sprintf("team-%d", i), "users": []any{fmt.Sprintf("lead-%d", i)},
			"quota": map[string]any{"default-flavor": map[string]any{"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 8}},
		})
	}
	return teams
}

func TestOneReleasePerTeamEqualsOneForAll(t *testing.T) {
	dashboards := map[string]any{"users": []any{"carol"}}
	together := onboarded(t, "teams", map[string]any{"teams": fifty()})
	apart := onboarded(t, "nodes", nil)
	for i, team := range fifty() {
		in := map[string]any{"teams": []any{team}, "dashboards": dashboards, "flavors": []any{map[string]any{"name": "default-flavor", "create": false}}}
		for id, o := range onboarded(t, fmt.Sprintf("release-%d", i), in) {
			if _, twice := apart[id]; twice {
				t.Errorf("two releases own %s", id)
			}
			apart[id] = o
		}
	}
	for _, all := range []map[string]any{together, apart} {
		for _, o := range all {
			delete(o.(metav1.Object).GetLabels(), "app.kubernetes.io/instance") // the name of the release
		}
	}
	for id, o := range together {
		if diff := cmp.Diff(o, apart[id]); diff != "" {
			t.Errorf("%s (-together +apart)\n%s", id, diff)
		}
	}
}

func TestFiftyTeamsFitInOneRelease(t *testing.T) {
	rendered, err := render(t, "teams", map[string]any{"teams": fifty()})
	if err != nil {
		t.Fatal(err)
	}
	size := len(stored(t, rendered))
	t.Logf("a stored release of fifty teams has %d KiB", size>>10)
	if size > maxRelease {
		t.Errorf("the stored release has %d bytes, more than %d", size, maxRelease)
	}
}

func TestRolesOfTheBindingsExist(t *testing.T) {
	roles := clusterRoles(t)
	for id, o := range onboarded(t, "teams", exampleTeams(t)["hierarchy.in.yaml"]) {
		var ref rbacv1.RoleRef
		switch binding := o.(type) {
		case *rbacv1.RoleBinding:
			ref = binding.RoleRef
		case *rbacv1.ClusterRoleBinding:
			ref = binding.RoleRef
		}
		if _, there := roles[ref.Name]; ref.Kind == "ClusterRole" && !there {
			t.Errorf("%s binds %s, which does not exist", id, ref.Name)
		}
	}
}

func TestDashboardsCannotReadSecretsOrChangeAnything(t *testing.T) {
	roles := clusterRoles(t)
	for _, name := range []string{"mlbatch-view", "mlbatch-view-queues", "mlbatch-view-nodes"} {
		for _, rule := range roles[name].Rules {
			for _, verb := range rule.Verbs {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) {
					t.Errorf("%s may %s %v", name, verb, rule.Resources)
				}
			}
			for _, resource := range []string{"secrets", "configmaps", "pods/log", "*"} {
				if slices.Contains(rule.Resources, resource) {
					t.Errorf("%s may read %s", name, resource)
				}
			}
		}
	}
}

// policyOf is the NetworkPolicy of team blue with these values, or nil.
func policyOf(t *testing.T, networkPolicy, team map[string]any) *networkingv1.NetworkPolicySpec {
	t.Helper()
	blue := map[string]any{"name": "blue", "quota": map[string]any{"default-flavor": map[string]any{"cpu": 8, "memory": "64Gi"}}}
	maps.Copy(blue, team)
	in := map[string]any{"networkPolicy": networkPolicy, "teams": []any{blue}}
	if networkPolicy == nil {
		delete(in, "networkPolicy")
	}
	policy, there := onboarded(t, "teams", in)["NetworkPolicy/blue/mlbatch-team"].(*networkingv1.NetworkPolicy)
	if !there {
		return nil
	}
	return &policy.Spec
}

func TestKubeRayCanAlwaysReachATeamsPods(t *testing.T) {
	for name, row := range map[string]struct {
		in   map[string]any
		want []string
	}{
		"the platform's":         {nil, []string{namespace}},
		"with other namespaces":  {map[string]any{"fromNamespaces": []any{"monitoring"}}, []string{namespace, "monitoring"}},
		"in another namespace":   {map[string]any{"kuberayNamespace": "redhat-ods-applications"}, []string{"redhat-ods-applications"}},
		"also in fromNamespaces": {map[string]any{"fromNamespaces": []any{namespace}}, []string{namespace}},
		"with an empty list":     {map[string]any{"fromNamespaces": []any{}}, []string{namespace}},
		"without a list":         {map[string]any{"fromNamespaces": nil}, []string{namespace}},
	} {
		t.Run(name, func(t *testing.T) {
			from := policyOf(t, row.in, nil).Ingress[1].From[0].NamespaceSelector.MatchExpressions[0]
			if diff := cmp.Diff(row.want, from.Values); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEgressIsLimitedAsWritten(t *testing.T) {
	open, closed := map[string]any{"deniedEgress": nil}, map[string]any{"egress": []any{}}
	own := "own pods"
	for name, row := range map[string]struct {
		in, team map[string]any
		ports    []int32
		to       []string
	}{
		"by default": {nil, nil, []int32{53, 53, 5353, 5353, 8053, 8053, 443, 6443}, []string{
			"all pods", "0.0.0.0/0 except [169.254.169.254/32 168.63.129.16/32 100.100.100.200/32]", "::/0 except [fd00:ec2::254/128 fd20:ce::254/128]",
		}},
		"with one other address": {map[string]any{"deniedEgress": []any{"10.0.0.0/8"}, "dnsPorts": nil, "apiServerPorts": nil}, nil, nil, []string{
			"all pods", "0.0.0.0/0 except [10.0.0.0/8]", "::/0 except []",
		}},
		"open":                   {open, nil, nil, nil},
		"open for one team":      {nil, map[string]any{"networkPolicy": open}, nil, nil},
		"closed for all":         {closed, nil, []int32{53, 53, 5353, 5353, 8053, 8053, 443, 6443}, []string{own}},
		"closed for all but one": {map[string]any{"egress": []any{}, "deniedEgress": nil}, map[string]any{"networkPolicy": map[string]any{"egress": nil}}, nil, nil},
		"closed, with other ports": {map[string]any{
			"dnsPorts": []any{1053}, "apiServerPorts": nil,
			"egress": []any{map[string]any{"ports": []any{map[string]any{"port": 9000}}}},
		}, nil, []int32{1053, 1053, 9000}, []string{own}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyOf(t, row.in, row.team)
			ports, to := reached(policy.Egress)
			if diff := cmp.Diff(row.ports, ports); diff != "" {
				t.Errorf("ports (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(row.to, to); diff != "" {
				t.Errorf("peers (-want +got)\n%s", diff)
			}
			if limited := slices.Contains(policy.PolicyTypes, networkingv1.PolicyTypeEgress); limited != (row.to != nil) {
				t.Errorf("the policy has the types %q", policy.PolicyTypes)
			}
		})
	}
}

func reached(rules []networkingv1.NetworkPolicyEgressRule) (ports []int32, to []string) {
	for _, rule := range rules {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntVal)
		}
		for _, peer := range rule.To {
			switch {
			case peer.IPBlock != nil:
				to = append(to, fmt.Sprintf("%s except %v", peer.IPBlock.CIDR, peer.IPBlock.Except))
			case peer.NamespaceSelector != nil:
				to = append(to, "all pods")
			default:
				to = append(to, "own pods")
			}
		}
	}
	return ports, to
}

func TestExistingNamespaceGetsAPolicyOnlyOnRequest(t *testing.T) {
	for name, row := range map[string]struct {
		team map[string]any
		want bool
	}{
		"a new namespace":                       {nil, true},
		"an existing namespace":                 {map[string]any{"createNamespace": false}, false},
		"an existing namespace, other settings": {map[string]any{"createNamespace": false, "networkPolicy": map[string]any{"fromNamespaces": []any{"a"}}}, false},
		"an existing namespace, enabled":        {map[string]any{"createNamespace": false, "networkPolicy": map[string]any{"enabled": true}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policyOf(t, nil, row.team) != nil; got != row.want {
				t.Errorf("a policy exists: %t", got)
			}
		})
	}
}

// mlbatch submit reads the queues before it submits.
func TestMembersCanReadTheQueuesUnlessDisabled(t *testing.T) {
	for _, want := range []bool{true, false} {
		in := map[string]any{"teams": fifty()[:1], "membersViewQueues": want}
		binding, got := onboarded(t, "teams", in)["ClusterRoleBinding//mlbatch-view-queues-team-0"].(*rbacv1.ClusterRoleBinding)
		if got != want {
			t.Errorf("membersViewQueues is %t, but a binding exists: %t", want, got)
		}
		if got && (binding.RoleRef.Name != "mlbatch-view-queues" || binding.Subjects[0].Name != "lead-0") {
			t.Errorf("%s is bound to %s", binding.RoleRef.Name, binding.Subjects[0].Name)
		}
	}
	role := clusterRoles(t)["mlbatch-view-queues"]
	for _, resource := range []string{"clusterqueues", "cohorts", "workloadpriorityclasses"} {
		if !allows(role, "list", "kueue.x-k8s.io", resource) {
			t.Errorf("members may not list %s", resource)
		}
	}
	if allows(role, "list", "", "nodes") {
		t.Error("members may list nodes")
	}
}

func TestNamesOfPrioritiesCanHaveDots(t *testing.T) {
	onboarded(t, "teams", map[string]any{"teams": fifty()[:1], "priorities": []any{"example.com-urgent", "example.com"}})
}
