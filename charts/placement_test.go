// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
)

// templateOf is each kind that makes pods, around the spec of one.
var templateOf = map[string]func(spec string) string{
	"a Pod":        podWith,
	"a PyTorchJob": pyTorchJobWith,
	"a TFJob": func(s string) string {
		return workWith("kubeflow.org/v1", "TFJob", "tfReplicaSpecs: {PS: {template: {spec: {"+s+"}}}}")
	},
	"an MPIJob": func(s string) string {
		return workWith("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs: {Launcher: {template: {spec: {"+s+"}}}}")
	},
	"a RayCluster": func(s string) string {
		return rayClusterWith("workerGroupSpecs: [{}, {template: {spec: {" + s + "}}}]")
	},
	"a RayJob":    func(s string) string { return rayJobWith("headGroupSpec: {template: {spec: {" + s + "}}}") },
	"a submitter": func(s string) string { return rayJobThat("submitterPodTemplate: {spec: {" + s + "}}") },
	"a RayService": func(s string) string {
		return rayServiceWith("rayClusterConfig: {headGroupSpec: {template: {spec: {" + s + "}}}}")
	},
	"a Deployment":  func(s string) string { return workWith("apps/v1", "Deployment", "template: {spec: {"+s+"}}") },
	"a StatefulSet": func(s string) string { return workWith("apps/v1", "StatefulSet", "template: {spec: {"+s+"}}") },
	"a Job":         func(s string) string { return workWith("batch/v1", "Job", "template: {spec: {"+s+"}}") },
	"a CronJob": func(s string) string {
		return workWith("batch/v1", "CronJob", "jobTemplate: {spec: {template: {spec: {"+s+"}}}}")
	},
	"a JobSet": func(s string) string {
		return workWith("jobset.x-k8s.io/v1alpha2", "JobSet", "replicatedJobs: [{template: {spec: {template: {spec: {"+s+"}}}}}]")
	},
	"a LeaderWorkerSet": func(s string) string {
		return workWith("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderWorkerTemplate: {workerTemplate: {spec: {"+s+"}}}")
	},
	"a ReplicationController": func(s string) string { return workWith("v1", "ReplicationController", "template: {spec: {"+s+"}}") },
}

// The teams chart writes into the namespace what the flavors of a team tolerate. Nothing else is tolerated: neither
// at creation, nor later, in any kind that makes pods, wrapped or not.
func TestWorkToleratesWhatItsFlavorsDo(t *testing.T) {
	placement := onePolicy(t, "placement")
	const list = "nvidia.com/gpu,example.com/team=blue"
	const others = "this team's pods may not tolerate example.com/reserved-for: remove it from tolerations, or ask an administrator to list it in tolerations of the team, whose pods tolerate nvidia.com/gpu, example.com/team=blue, conditions of nodes"
	for name, c := range map[string]struct{ tolerations, want string }{
		"none":                           {"", ""},
		"the accelerator of a flavor":    {"{key: nvidia.com/gpu, operator: Exists}", ""},
		"the same with a value":          {"{key: nvidia.com/gpu, value: present, effect: NoSchedule}", ""},
		"the nodes of the team":          {"{key: example.com/team, operator: Equal, value: blue}", ""},
		"the same by default":            {"{key: example.com/team, value: blue}", ""},
		"a node that is silent":          {"{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, {key: node.kubernetes.io/not-ready, operator: Exists}", ""},
		"the taint of others":            {"{key: nvidia.com/gpu, operator: Exists}, {key: example.com/reserved-for, operator: Exists}", others},
		"two of them":                    {"{key: a/b, operator: Exists}, {key: c, value: d}", "may not tolerate a/b, c=d: remove"},
		"the nodes of another team":      {"{key: example.com/team, value: red}", "may not tolerate example.com/team=red: remove"},
		"those of all teams":             {"{key: example.com/team, operator: Exists}", "may not tolerate example.com/team: remove"},
		"an operator that compares":      {"{key: example.com/team, operator: Gt, value: blue}", "may not tolerate example.com/team=blue: remove"},
		"a taint that says out of order": {"{key: node.kubernetes.io/out-of-service, operator: Exists}", "may not tolerate node.kubernetes.io/out-of-service: remove"},
		"one that looks like two":        {"{key: 'example.com/team=blue,', operator: Exists}", "may not tolerate example.com/team=blue,: remove"},
		"a key that is too long":         {"{key: " + strings.Repeat("a", 318) + "}", "pods of this team have at most 64 tolerations"},
		"a value that is too long":       {"{key: nvidia.com/gpu, value: " + strings.Repeat("a", 64) + "}", "pods of this team have at most 64 tolerations"},
		"too many":                       {strings.Repeat("{key: nvidia.com/gpu},", 65), "pods of this team have at most 64 tolerations"},
		"all":                            {"{operator: Exists}", "may not tolerate every taint"},
		"control planes":                 {"{key: node-role.kubernetes.io/control-plane}", "may not run on control planes"},
		"cordoned nodes":                 {"{key: node.kubernetes.io/unschedulable}", "may not run on cordoned nodes"},
	} {
		for kind, around := range templateOf {
			object, none := around("tolerations: ["+c.tolerations+"]"), around("")
			at := map[string]string{"mlbatch-tolerations": list}
			for what, r := range map[string]request{
				"created": {operation: admission.Create, object: object, annotations: at},
				"changed": {operation: admission.Update, object: object, old: none, annotations: at},
			} {
				if got := judge(t, placement, r, false); c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
					t.Errorf("%s, %s %s: want %q, got %q", name, kind, what, c.want, got)
				}
			}
			stays := request{operation: admission.Update, object: annotated(object, "a: b"), old: object, annotations: at}
			if got := judge(t, placement, stays, false); len(got) > 0 && !strings.Contains(c.want, "at most") {
				t.Errorf("%s: what is stored is refused, %s: %q", name, kind, got)
			}
		}
		namespace := admissionrules.Namespace{Labels: map[string]string{"mlbatch-team-namespace": "true"},
			Annotations: map[string]string{"mlbatch-tolerations": list}, Policies: admissionrules.Policies{Placement: true}}
		problems := wrapped(t, pyTorchJobWith("tolerations: ["+c.tolerations+"]")).ValidateIn(namespace)
		if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Detail, c.want)) {
			t.Errorf("%s, wrapped: want %q, got %v", name, c.want, problems)
		}
	}
}

// A pod keeps away, for as long as it is on a node, what its anti-affinity names, in whatever namespace that is: all
// pods of other teams from all nodes, if they have one label in common.
func TestNobodyKeepsOtherTeamsFromTheirNodes(t *testing.T) {
	const refused = "pods in a team namespace may keep away from pods of their own namespace only: leave out namespaces and namespaceSelector in podAntiAffinity"
	term := func(fields string) string { return "{topologyKey: kubernetes.io/os, labelSelector: {}" + fields + "}" }
	apart := func(how, terms string) string { return "affinity: {podAntiAffinity: {" + how + ": [" + terms + "]}}" }
	const must, should = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	placement := onePolicy(t, "placement")
	ofTeam := admissionrules.Namespace{Labels: map[string]string{"mlbatch-team-namespace": "true"}, Policies: admissionrules.Policies{Placement: true}}
	for name, c := range map[string]struct {
		affinity string
		refused  bool
	}{
		"pods of all namespaces":         {apart(must, term(", namespaceSelector: {}")), true},
		"pods of some namespaces":        {apart(must, term("")+", "+term(", namespaceSelector: {matchLabels: {a: b}}")), true},
		"pods of another namespace":      {apart(must, term(", namespaces: [red]")), true},
		"too many terms":                 {apart(must, strings.Repeat(term("")+",", 65)), true},
		"its own pods":                   {apart(must, term("")), false},
		"its own pods, in as many terms": {apart(must, strings.Repeat(term("")+",", 64)), false},
		"an empty list":                  {apart(must, term(", namespaces: []")), false},
		"rather not":                     {apart(should, "{weight: 1, podAffinityTerm: "+term(", namespaceSelector: {}")+"}"), false},
		"pods that it wants to be near":  {"affinity: {podAffinity: {" + must + ": [" + term(", namespaceSelector: {}") + "]}}", false},
	} {
		for kind, around := range templateOf {
			object := around(c.affinity)
			for what, r := range map[string]request{
				"created": {operation: admission.Create, object: object},
				"changed": {operation: admission.Update, object: object, old: around("")},
			} {
				if got := judge(t, placement, r, false); (len(got) > 0) != c.refused || c.refused && !strings.Contains(got[0], refused) {
					t.Errorf("%s, %s %s: got %q", name, kind, what, got)
				}
			}
			if got := judge(t, placement, request{operation: admission.Update, object: annotated(object, "a: b"), old: object}, false); len(got) > 0 {
				t.Errorf("%s: what is stored is refused, %s: %q", name, kind, got)
			}
		}
		problems := wrapped(t, pyTorchJobWith(c.affinity)).ValidateIn(ofTeam)
		if (len(problems) == 1) != c.refused || c.refused && !strings.Contains(problems[0].Detail, refused) {
			t.Errorf("%s, wrapped: got %v", name, problems)
		}
	}
	// JobSet's webhook adds such a term to pods, and the Job controller creates them.
	if got := judge(t, placement, request{operation: admission.Create, object: podWith(apart(must, term(", namespaceSelector: {}")))}, true); len(got) != 1 {
		t.Errorf("of a controller: got %q", got)
	}
}

// Kueue writes the tolerations of a flavor, and operators those of theirs.
func TestControllersTolerateWhatTheyWant(t *testing.T) {
	placement := onePolicy(t, "placement")
	at := map[string]string{"mlbatch-tolerations": ""}
	for kind, around := range templateOf {
		object := around("tolerations: [{key: example.com/reserved-for, operator: Exists}]")
		for what, r := range map[string]request{
			"created": {operation: admission.Create, object: object, annotations: at},
			"changed": {operation: admission.Update, object: object, old: around(""), annotations: at},
		} {
			if got := judge(t, placement, r, true); len(got) > 0 {
				t.Errorf("%s %s by a controller: %q", kind, what, got)
			}
			r.annotations = nil
			if got := judge(t, placement, r, false); len(got) > 0 {
				t.Errorf("%s %s in a namespace that is made by hand: %q", kind, what, got)
			}
		}
	}
}

// What of many tolerations is stored may stay, and become less.
func TestStoredTolerationsMayBecomeFewer(t *testing.T) {
	r := request{operation: admission.Update, old: pyTorchJobWith("tolerations: [{key: a}, {key: b}]"), object: pyTorchJobWith("tolerations: [{key: b}]"), annotations: map[string]string{"mlbatch-tolerations": ""}}
	placement := onePolicy(t, "placement")
	if got := judge(t, placement, r, false); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	r.object = pyTorchJobWith("tolerations: [{key: b}, {key: c}]")
	if got := judge(t, placement, r, false); len(got) != 1 || !strings.Contains(got[0], "may not tolerate c=: remove") {
		t.Errorf("got %q", got)
	}
}

// The taints by which the health of nodes is judged are tolerated as administrators describe.
func TestTaintsOfNodeHealthAreTolerated(t *testing.T) {
	health := map[string]any{"taints": []any{map[string]any{"key": "example.com/broken", "resources": []any{"*"}, "effect": "NoExecute"}, map[string]any{"key": "example.com/fan", "value": "slow", "resources": []any{"*"}, "effect": "NoExecute"}}}
	placement := compile(t, policiesWith(t, map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{"nodeHealth": health}}}})["mlbatch-placement"])
	for tolerations, refused := range map[string]bool{
		"{key: example.com/broken, operator: Exists}":                                false,
		"{key: example.com/broken, value: fan}, {key: example.com/fan, value: slow}": false,
		"{key: example.com/fan, operator: Exists}":                                   true,
	} {
		r := request{operation: admission.Create, object: pyTorchJobWith("tolerations: [" + tolerations + "]"), annotations: map[string]string{"mlbatch-tolerations": ""}}
		if got := judge(t, placement, r, false); len(got) > 0 != refused {
			t.Errorf("%s: got %q", tolerations, got)
		}
	}
}

// A team tolerates what its flavors have or tolerate, and what its list says; never every taint.
func TestTheChartListsWhatFlavorsTolerate(t *testing.T) {
	flavors := []any{
		map[string]any{"name": "gpu", "nodeTaints": []any{map[string]any{"key": "nvidia.com/gpu", "effect": "NoSchedule"}},
			"tolerations": []any{map[string]any{"operator": "Exists"}, map[string]any{"key": "example.com/team", "operator": "Equal", "value": "blue", "effect": "NoSchedule"}}},
		map[string]any{"name": "others", "tolerations": []any{map[string]any{"key": "example.com/reserved-for", "operator": "Exists"}}},
	}
	quota := map[string]any{"gpu": map[string]any{"cpu": 1, "memory": "1Gi"}}
	all := onboarded(t, "teams", map[string]any{
		"flavors": flavors, "tolerations": []any{map[string]any{"key": "a/b"}, map[string]any{"key": "nvidia.com/gpu", "operator": "Exists"}},
		"teams": []any{
			map[string]any{"name": "blue", "quota": quota},
			map[string]any{"name": "red", "quota": quota, "tolerations": []any{map[string]any{"key": "c", "value": "d"}}},
			map[string]any{"name": "green", "quota": quota, "tolerations": []any{}},
			map[string]any{"name": "grey", "quota": map[string]any{"others": map[string]any{"cpu": 1, "memory": "1Gi", "example.com/tpu": 0, "example.com/fpga": 2}}},
		},
	})
	for team, want := range map[string]string{
		"blue":  "a/b,nvidia.com/gpu,example.com/team=blue",
		"red":   "c=d,nvidia.com/gpu,example.com/team=blue",
		"green": "nvidia.com/gpu,example.com/team=blue",
		"grey":  "a/b,nvidia.com/gpu,example.com/reserved-for,example.com/fpga,example.com/tpu", // devices keep others away
	} {
		if got, is := all["Namespace//"+team].(*corev1.Namespace).Annotations["mlbatch-tolerations"]; got != want || !is {
			t.Errorf("%s tolerates %q, not %q", team, got, want)
		}
	}
}
