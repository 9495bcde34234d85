// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/snapshot"
)

// clusterRoles are the ClusterRoles of the platform, by name.
func clusterRoles(t *testing.T) map[string]rbac.ClusterRole {
	t.Helper()
	return clusterRolesWith(t, nil)
}

func clusterRolesWith(t *testing.T, values map[string]any) map[string]rbac.ClusterRole {
	t.Helper()
	rendered, err := renderLight(t, here(t), "mlbatch", values)
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]rbac.ClusterRole{}
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		if parse(t, document).Kind != "ClusterRole" {
			continue
		}
		var role rbac.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		roles[role.Name] = role
	}
	return roles
}

// allows reports whether a role allows the verb on all objects of a resource.
func allows(role rbac.ClusterRole, verb, group, resource string) bool {
	return slices.ContainsFunc(role.Rules, func(rule rbac.PolicyRule) bool {
		return len(rule.ResourceNames) == 0 && slices.Contains(rule.Verbs, verb) &&
			slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource)
	})
}

func TestTeamMembersCreateComputeThroughQueuesOnly(t *testing.T) {
	role := clusterRoles(t)["mlbatch-edit"]
	for _, kind := range []struct {
		group, resource string
		create, wrap    bool
	}{
		{group: "workload.codeflare.dev", resource: "appwrappers", create: true},
		{group: "kubeflow.org", resource: "pytorchjobs", create: true},
		{group: "ray.io", resource: "rayjobs", create: true},
		{group: "ray.io", resource: "rayclusters", create: true},
		{group: "", resource: "services", create: true},
		{group: "", resource: "configmaps", create: true},
		{group: "scheduling.x-k8s.io", resource: "podgroups", create: true},
		{group: "", resource: "pods", wrap: true},
		{group: "", resource: "serviceaccounts", wrap: true},
		{group: "batch", resource: "jobs", wrap: true},
		{group: "apps", resource: "deployments", wrap: true},
		{group: "apps", resource: "statefulsets", wrap: true},
		{group: "apps", resource: "replicasets", wrap: true},
		{group: "jobset.x-k8s.io", resource: "jobsets", wrap: true},
		{group: "leaderworkerset.x-k8s.io", resource: "leaderworkersets", wrap: true},
		{group: "kubeflow.org", resource: "tfjobs", wrap: true},
		{group: "kubeflow.org", resource: "xgboostjobs", wrap: true},
		{group: "kubeflow.org", resource: "paddlejobs", wrap: true},
		{group: "kubeflow.org", resource: "jaxjobs", wrap: true},
		{group: "kubeflow.org", resource: "mpijobs", wrap: true},
		{group: "ray.io", resource: "rayservices", wrap: true},
		{group: "apps", resource: "daemonsets"},
		{group: "kueue.x-k8s.io", resource: "localqueues"},
		{group: "rbac.authorization.k8s.io", resource: "roles"},
	} {
		if got := allows(role, "create", kind.group, kind.resource); got != kind.create {
			t.Errorf("create %s: %t, want %t", kind.resource, got, kind.create)
		}
		if got := allows(role, "wrap", kind.group, kind.resource); got != kind.wrap {
			t.Errorf("wrap %s: %t, want %t", kind.resource, got, kind.wrap)
		}
		for _, verb := range []string{"get", "list", "watch", "delete"} {
			if kind.wrap && kind.resource != "serviceaccounts" && !allows(role, verb, kind.group, kind.resource) {
				t.Errorf("may wrap %s but not %s them", kind.resource, verb)
			}
		}
	}
	for _, rule := range role.Rules {
		if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
			t.Errorf("a rule has a wildcard: %v", rule)
		}
	}
}

// A ClusterQueue's list would name the waiting work of other teams: members have mlbatch-view-queues by default.
// 'mlbatch why' sends members to limits beside quota, and 'kubectl top pods' asks for metrics.
func TestMembersReadWhatTheyAreSentToLookAt(t *testing.T) {
	role := clusterRoles(t)["mlbatch-edit"]
	for resource, group := range map[string]string{"limitranges": "", "resourcequotas": "", "pods": "metrics.k8s.io"} {
		if !allows(role, "get", group, resource) || !allows(role, "list", group, resource) || allows(role, "update", group, resource) {
			t.Errorf("members may not read %s, or may change them", resource)
		}
	}
}

func TestMembersSeePositionsInTheirOwnQueuesOnly(t *testing.T) {
	roles := clusterRoles(t)
	for _, name := range []string{"mlbatch-edit", "mlbatch-view", "mlbatch-view-queues"} {
		if got, want := allows(roles[name], "get", "visibility.kueue.x-k8s.io", "localqueues/pendingworkloads"), name != "mlbatch-view-queues"; got != want {
			t.Errorf("%s may see the positions in LocalQueues: %t, want %t", name, got, want)
		}
		if allows(roles[name], "get", "visibility.kueue.x-k8s.io", "clusterqueues/pendingworkloads") {
			t.Errorf("%s may see the waiting work of all teams", name)
		}
	}
}

func TestRolesIncludeExtraKinds(t *testing.T) {
	roles := clusterRolesWith(t, map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{
		"extraKinds": []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Rocket", "resource": "rockets"}},
	}}}})
	for _, right := range []struct{ role, verb string }{
		{"appwrapper-manager-role", "create"},
		{"appwrapper-manager-role", "watch"},
		{"appwrapper-manager-role", "delete"},
		{"mlbatch-edit", "wrap"},
		{"mlbatch-edit", "delete"},
	} {
		if !allows(roles[right.role], right.verb, "example.com", "rockets") {
			t.Errorf("%s may not %s rockets", right.role, right.verb)
		}
	}
	if allows(roles["mlbatch-edit"], "create", "example.com", "rockets") {
		t.Error("members may create rockets without a queue")
	}
}

// The controller changes nodes only where an administrator lets it cordon some.
func TestNodesAreCordonedByChoiceOnly(t *testing.T) {
	for sentence, tc := range map[string]struct {
		cordon any
		want   bool
	}{
		"as installed":     {map[string]any{}, false},
		"no value":         {nil, false},
		"switched off":     {map[string]any{"nodes": 0, "teams": 3}, false},
		"an unset number":  {map[string]any{"nodes": nil}, false},
		"switched on":      {map[string]any{"nodes": 2}, true},
		"a number of JSON": {map[string]any{"nodes": float64(2)}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			role := clusterRolesWith(t, map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{
				"nodeHealth": map[string]any{"cordon": tc.cordon},
			}}}})["appwrapper-manager-role"]
			if got := allows(role, "patch", "", "nodes"); got != tc.want {
				t.Errorf("it may patch nodes: %t, want %t", got, tc.want)
			}
			for _, verb := range []string{"create", "update", "delete"} {
				if allows(role, verb, "", "nodes") {
					t.Errorf("it may %s nodes", verb)
				}
			}
		})
	}
}

// It tells Kueue of capacity only in the objects that an administrator names.
func TestCapacityIsWrittenByChoiceOnly(t *testing.T) {
	for _, names := range [][]any{nil, {"nodes"}} {
		role := clusterRolesWith(t, map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{
			"nodeHealth": map[string]any{"capacityProviders": names},
		}}}})["appwrapper-manager-role"]
		var may []string
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "capacityproviders/status") {
				may = append(may, rule.ResourceNames...)
			}
		}
		if len(may) != len(names) || len(names) > 0 && may[0] != names[0] {
			t.Errorf("with %v it may write %v", names, may)
		}
		if got := allows(role, "list", "kueue.x-k8s.io", "capacityproviders"); got != (len(names) > 0) {
			t.Errorf("with %v it may list CapacityProviders: %t", names, got)
		}
	}
}

func TestNobodyReadsTheClustersSecretsForACertificate(t *testing.T) {
	for name, role := range clusterRoles(t) {
		// KubeRay creates Secrets for Ray's tokens. Kueue's own role is limited to its namespace.
		if name == "kuberay-operator" {
			continue
		}
		for _, verb := range []string{"get", "list", "watch", "update", "patch"} {
			if allows(role, verb, "", "secrets") && name != "mlbatch-edit" {
				t.Errorf("%s may %s every Secret", name, verb)
			}
		}
	}
}

// By default, KubeRay works in all namespaces.
func TestKubeRayCanBeLimitedToNamespaces(t *testing.T) {
	rendered, err := render(t, "kuberay-operator", map[string]any{"watchNamespaces": []any{"blue", "green"}})
	if err != nil {
		t.Fatal(err)
	}
	var bound []string
	for _, o := range objects(t, rendered.Manifest) {
		switch o.Kind {
		case "ClusterRoleBinding":
			if o.Name == "kuberay-operator" {
				t.Error("it has rights everywhere")
			}
		case "RoleBinding":
			bound = append(bound, o.Namespace+"/"+o.Name)
		case "Deployment":
			if args := o.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--watch-namespace=blue,green") {
				t.Errorf("it has the arguments %q", args)
			}
		}
	}
	want := []string{"blue/kuberay-operator", "green/kuberay-operator", namespace + "/kuberay-operator-leader-election"}
	if slices.Sort(bound); !slices.Equal(bound, want) {
		t.Errorf("it has rights by %q, want %q", bound, want)
	}
}

func TestTheControllerReadsNoSecretWithoutACertificateOfItsOwn(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"cert-manager manages the certificate": {"certManagement": map[string]any{"certManager": true}},
		"the webhooks are disabled":            {"webhooksEnabled": false},
		"both":                                 {"webhooksEnabled": false, "certManagement": map[string]any{"certManager": true}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "appwrapper", map[string]any{"config": config})
			if err != nil {
				t.Fatal(err)
			}
			for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
				var role rbac.ClusterRole // a Role has the same fields
				if o := parse(t, document); o.Kind != "ClusterRole" && o.Kind != "Role" {
					continue
				}
				if err := yaml.Unmarshal([]byte(document), &role); err != nil {
					t.Fatal(err)
				}
				for _, rule := range role.Rules {
					if slices.Contains(rule.Resources, "secrets") ||
						slices.Contains(rule.Resources, "mutatingwebhookconfigurations") && !slices.Equal(rule.Verbs, []string{"list"}) {
						t.Errorf("%s has %v", role.Name, rule)
					}
				}
			}
		})
	}
}

func TestWebhookConfigurationsCanBeChangedOnlyByName(t *testing.T) {
	for name, role := range clusterRoles(t) {
		if strings.HasPrefix(name, "kueue-") {
			continue
		}
		for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
			for _, verb := range []string{"create", "update", "patch", "delete"} {
				if allows(role, verb, "admissionregistration.k8s.io", resource) {
					t.Errorf("%s may %s any of %s", name, verb, resource)
				}
			}
		}
	}
}

// A typical API server grants some of these to everyone or does not require them. OpenShift
// requires update on the finalizers of a blocking owner, and a hardened API server may have
// removed system:basic-user.
func TestTheControllerMayDoWhatItsCodeAsksFor(t *testing.T) {
	role := clusterRoles(t)["appwrapper-manager-role"]
	for _, right := range []struct{ verb, group, resource string }{
		{"update", "workload.codeflare.dev", "appwrappers/finalizers"},
		{"patch", "workload.codeflare.dev", "appwrappers"},
		{"patch", "workload.codeflare.dev", "appwrappers/status"},
		{"patch", "kueue.x-k8s.io", "workloads"},
		{"create", "events.k8s.io", "events"},
		{"patch", "events.k8s.io", "events"}, // repeated events become a series
		{"create", "authorization.k8s.io", "subjectaccessreviews"},
		{"create", "authorization.k8s.io", "selfsubjectaccessreviews"},
		{"watch", "", "pods"},
	} {
		if !allows(role, right.verb, right.group, right.resource) {
			t.Errorf("appwrapper-manager-role may not %s %s", right.verb, right.resource)
		}
	}
}

func TestControllerMayWatchNodesIfItMonitorsThem(t *testing.T) {
	for sentence, row := range map[string]struct {
		autopilot map[string]any
		want      bool
	}{
		"by default":           {nil, true},
		"if the value is null": {map[string]any{"monitorNodes": nil}, true},
		"unless disabled":      {map[string]any{"monitorNodes": false}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			config := map[string]any{"appwrapper": map[string]any{"autopilot": row.autopilot}}
			role := clusterRolesWith(t, alone("appwrapper", map[string]any{"config": config}))["appwrapper-manager-role"]
			for _, verb := range []string{"list", "watch"} {
				if got := allows(role, verb, "", "nodes"); got != row.want {
					t.Errorf("%s: %t", verb, got)
				}
			}
			if !allows(role, "patch", "kueue.x-k8s.io", "workloads") {
				t.Error("it cannot keep the quota of what is deleted in the foreground")
			}
			for _, verb := range []string{"get", "update", "patch"} {
				if allows(role, verb, "", "nodes") {
					t.Errorf("it may %s nodes, but does not need to", verb)
				}
			}
		})
	}
}

// Idle work gives its quota back through the same right, whether or not there are pauses.
func TestControllerMayPauseWorkAndGiveItsQuotaBack(t *testing.T) {
	for sentence, pause := range map[string]map[string]any{
		"by default":           nil,
		"if the value is null": {"after": nil},
		"with other values":    {"after": 10, "first": "5m"},
		"without pauses":       {"after": 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			config := map[string]any{"appwrapper": map[string]any{"preemptionPause": pause}}
			role := clusterRolesWith(t, alone("appwrapper", map[string]any{"config": config}))["appwrapper-manager-role"]
			for _, verb := range []string{"get", "list", "watch"} {
				if !allows(role, verb, "kueue.x-k8s.io", "workloads") {
					t.Errorf("it may not %s Workloads, and would start what is evicted", verb)
				}
			}
			if !allows(role, "patch", "kueue.x-k8s.io", "workloads/status") {
				t.Error("it may not patch the status")
			}
			if allows(role, "update", "kueue.x-k8s.io", "workloads") || allows(role, "update", "kueue.x-k8s.io", "workloads/status") {
				t.Error("it may do more than it needs to")
			}
		})
	}
}

func TestControllerMayChangeOnlyTheQuotaOfSlackQueues(t *testing.T) {
	for what, row := range map[string]struct {
		config map[string]any
		want   []string
	}{
		"by default none":              {map[string]any{}, nil},
		"if all values are null":       {map[string]any{"slackQueueName": nil, "slackQueueNames": nil, "autopilot": nil}, nil},
		"one":                          {map[string]any{"slackQueueName": "a"}, []string{"a"}},
		"several, each once":           {map[string]any{"slackQueueName": "a", "slackQueueNames": []any{"b", "a"}}, []string{"a", "b"}},
		"unless nodes are not watched": {map[string]any{"slackQueueName": "a", "autopilot": map[string]any{"monitorNodes": false}}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			config := map[string]any{"appwrapper": row.config}
			role := clusterRolesWith(t, map[string]any{"appwrapper": map[string]any{"config": config}})["appwrapper-manager-role"]
			for _, verb := range []string{"create", "delete", "patch", "update"} {
				var got []string
				for _, rule := range role.Rules {
					if slices.Contains(rule.Resources, "clusterqueues") && slices.Contains(rule.Verbs, verb) {
						got = append(got, rule.ResourceNames...)
					}
				}
				if want := row.want; verb != "update" && !slices.Equal(got, want) || verb == "update" && got != nil {
					t.Errorf("it may %s %q, want %q", verb, got, want)
				}
				if allows(role, verb, "kueue.x-k8s.io", "clusterqueues") {
					t.Errorf("it may %s all queues", verb)
				}
			}
			if may := allows(role, "watch", "kueue.x-k8s.io", "clusterqueues"); may != (row.want != nil) {
				t.Errorf("it may watch ClusterQueues: %t", may)
			}
		})
	}
}

// It writes to flavors what their nodes have, and neither makes nor removes any.
func TestFlavorsArePatchedUnlessNodesAreNotWatched(t *testing.T) {
	for _, monitored := range []bool{true, false} {
		role := clusterRolesWith(t, map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{
			"autopilot": map[string]any{"monitorNodes": monitored},
		}}}})["appwrapper-manager-role"]
		for verb, wants := range map[string]bool{"list": true, "watch": true, "patch": true, "update": false, "create": false, "delete": false} {
			if may := allows(role, verb, "kueue.x-k8s.io", "resourceflavors"); may != (wants && monitored) {
				t.Errorf("with monitorNodes %t it may %s flavors: %t", monitored, verb, may)
			}
		}
	}
}

// Upstream's role has the permissions for all kinds; MPIJobs need far more than the others.
func TestTrainingOperatorHasOnlyThePermissionsOfItsKinds(t *testing.T) {
	rights := []struct {
		verb, group, resource string
		always, mpi, volcano  bool
	}{
		{verb: "create", group: "", resource: "pods", always: true},
		{verb: "create", group: "", resource: "services", always: true},
		{verb: "watch", group: "autoscaling", resource: "horizontalpodautoscalers", always: true},
		{verb: "create", group: "scheduling.x-k8s.io", resource: "podgroups", always: true},
		{verb: "update", group: "kubeflow.org", resource: "pytorchjobs/finalizers", always: true},
		{verb: "watch", group: "kubeflow.org", resource: "jaxjobs", always: true},
		// Its controllers watch these if Volcano is installed, and fail without the permission.
		{verb: "watch", group: "scheduling.volcano.sh", resource: "podgroups", always: true},
		{verb: "create", group: "scheduling.volcano.sh", resource: "podgroups", volcano: true},
		{verb: "create", group: "", resource: "serviceaccounts", mpi: true},
		{verb: "create", group: "rbac.authorization.k8s.io", resource: "roles", mpi: true},
		{verb: "create", group: "rbac.authorization.k8s.io", resource: "rolebindings", mpi: true},
		{verb: "create", group: "", resource: "pods/exec", mpi: true},
		{verb: "update", group: "", resource: "configmaps", mpi: true},
		{verb: "watch", group: "kubeflow.org", resource: "mpijobs", mpi: true},
		{verb: "update", group: "kubeflow.org", resource: "mpijobs/status", mpi: true},
	}
	kinds := []any{"pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob"}
	for name, row := range map[string]struct {
		values       map[string]any
		mpi, volcano bool
	}{
		"the default kinds": {values: map[string]any{"kinds": kinds}},
		"MPIJobs too":       {values: map[string]any{"kinds": append(slices.Clone(kinds), "mpijob")}, mpi: true},
		"Volcano":           {values: map[string]any{"gangSchedulerName": "volcano"}, volcano: true},
	} {
		t.Run(name, func(t *testing.T) {
			role := clusterRolesWith(t, alone("training-operator", row.values))["training-operator"]
			for _, right := range rights {
				want := right.always || right.mpi && row.mpi || right.volcano && row.volcano
				if got := allows(role, right.verb, right.group, right.resource); got != want {
					t.Errorf("%s %s of %q: %t, want %t", right.verb, right.resource, right.group, got, want)
				}
			}
		})
	}
}

// Members may wrap exactly what the controller may deploy. The exception is for older
// AppWrappers: today's Coscheduler has its PodGroups in another API group.
func TestControllerMayDeployWhatMembersMayWrap(t *testing.T) {
	all := clusterRoles(t)
	members, everywhere := all["mlbatch-edit"], all["appwrapper-manager-role"]
	team := map[string]any{"teams": []any{map[string]any{"name": "blue", "quota": map[string]any{"default-flavor": map[string]any{"cpu": 1, "memory": 1}}}}}
	inTeam := roleInChart(t, "teams", "mlbatch-wrapped-secrets", team)
	for resource := range resources(members, everywhere, inTeam) {
		group, name, _ := strings.Cut(resource, "/")
		wrappable := !strings.Contains(name, "/") &&
			(allows(members, "create", group, name) || allows(members, "wrap", group, name) || resource == "scheduling.sigs.k8s.io/podgroups")
		for _, verb := range []string{"create", "delete", "get", "list", "watch", "update", "patch"} {
			want := wrappable && slices.Contains([]string{"create", "delete", "get"}, verb) ||
				wrappable && resource != "/secrets" && slices.Contains([]string{"list", "watch"}, verb)
			if got := allows(everywhere, verb, group, name) || allows(inTeam, verb, group, name); got != want && deployed(resource) {
				t.Errorf("the controller may %s %s: %t, want %t", verb, resource, got, want)
			}
		}
	}
}

// deployed reports whether the controller needs access to a resource only to deploy it.
func deployed(resource string) bool {
	return !strings.HasPrefix(resource, "workload.codeflare.dev/") && !slices.Contains([]string{
		"/namespaces", "/nodes", "/limitranges", "node.k8s.io/runtimeclasses", "admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"authorization.k8s.io/subjectaccessreviews", "authorization.k8s.io/selfsubjectaccessreviews", "events.k8s.io/events",
		"kueue.x-k8s.io/workloads", "kueue.x-k8s.io/workloads/status", "kueue.x-k8s.io/resourceflavors",
	}, resource)
}

// resources are all resources in the roles, as group/resource.
func resources(roles ...rbac.ClusterRole) map[string]bool {
	named := map[string]bool{}
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					named[group+"/"+resource] = true
				}
			}
		}
	}
	return named
}

func TestWrappedSecretsAreGrantedToTheController(t *testing.T) {
	one := []any{map[string]any{"name": "blue", "namespace": "azure", "quota": map[string]any{"default-flavor": map[string]any{"cpu": 1, "memory": 1}}}}
	for name, row := range map[string]struct {
		controller map[string]any
		want       string
	}{
		"the platform's controller": {map[string]any{}, namespace + "/appwrapper-controller-manager"},
		"another controller":        {map[string]any{"serviceAccount": map[string]any{"name": "codeflare", "namespace": "rhoai"}}, "rhoai/codeflare"},
		"disabled":                  {map[string]any{"wrappedSecrets": false}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "teams", map[string]any{"teams": one, "controller": row.controller})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
				var binding rbac.RoleBinding
				if o := parse(t, document); o.Kind != "RoleBinding" || o.Name != "mlbatch-wrapped-secrets" {
					continue
				}
				if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
					t.Fatal(err)
				}
				if binding.Namespace != "azure" || binding.RoleRef.Kind != "Role" {
					t.Errorf("it is %v in %s", binding.RoleRef, binding.Namespace)
				}
				got = binding.Subjects[0].Namespace + "/" + binding.Subjects[0].Name
			}
			if got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}

// roleInChart returns a Role of a chart.
func roleInChart(t *testing.T, chart, name string, values map[string]any) rbac.ClusterRole {
	t.Helper()
	rendered, err := render(t, chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var role rbac.ClusterRole
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		if o := parse(t, document); o.Kind == "Role" && o.Name == name {
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
		}
	}
	return role
}

// The roles list Kueue's kinds. A new release may have more.
func TestRolesListEveryKindOfKueueOrOmitItOnPurpose(t *testing.T) {
	const group = "kueue.x-k8s.io"
	kinds, roles := map[string]bool{}, clusterRoles(t)
	for _, o := range platform(t, nil) {
		if plural, is := strings.CutSuffix(o.Name, "."+group); is && o.Kind == "CustomResourceDefinition" {
			kinds[plural] = true
		}
	}
	if len(kinds) < 11 {
		t.Fatalf("Kueue has only %d kinds", len(kinds))
	}
	for role, leftOut := range map[string][]string{
		"mlbatch-edit": nil,
		// Namespaced kinds, which mlbatch-view includes, and the configuration of clusters and
		// autoscalers, which is for administrators and not about queues.
		"mlbatch-view-queues": {"localqueues", "workloads", "multikueueclusters", "multikueueconfigs", "provisioningrequestconfigs"},
	} {
		for kind := range kinds {
			if allows(roles[role], "list", group, kind) == slices.Contains(leftOut, kind) {
				t.Errorf("%s: %s is neither listed nor omitted on purpose, or both", role, kind)
			}
		}
	}
}

// What stands between a pod and the owner of its Workload are the kinds that members may wrap
// and that make pods, and what their operators make of them.
func TestAuditMayListWhatItReadsAndNoMore(t *testing.T) {
	all := clusterRoles(t)
	role := all["mlbatch-audit"]
	for _, rule := range role.Rules {
		if !slices.Equal(rule.Verbs, []string{"list"}) {
			t.Errorf("it may %v %v", rule.Verbs, rule.Resources)
		}
	}
	needed := slices.Clone(snapshot.Resources)
	for resource := range resources(all["mlbatch-edit"]) {
		group, name, _ := strings.Cut(resource, "/")
		if makesPods := slices.Contains([]string{"apps", "batch", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io", "kubeflow.org", "ray.io"}, group); makesPods {
			needed = append(needed, schema.GroupResource{Group: group, Resource: name})
		}
	}
	for _, more := range []string{"daemonsets.apps", "cronjobs.batch", "replicationcontrollers"} {
		needed = append(needed, schema.ParseGroupResource(more))
	}
	for _, r := range needed {
		if !allows(role, "list", r.Group, r.Resource) {
			t.Errorf("it may not list %s", r)
		}
	}
	for resource := range resources(role) {
		group, name, _ := strings.Cut(resource, "/")
		if !slices.Contains(needed, schema.GroupResource{Group: group, Resource: name}) {
			t.Errorf("it may list %s, but does not need to", resource)
		}
	}
}

func TestAuditMayListExtraKinds(t *testing.T) {
	kinds := []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Simulation", "resource": "simulations"}}
	role := clusterRolesWith(t, map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{"extraKinds": kinds}}}})["mlbatch-audit"]
	if !allows(role, "list", "example.com", "simulations") {
		t.Errorf("it may list %v", role.Rules)
	}
}
