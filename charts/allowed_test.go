// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/mlbatch/mlbatch/test/golden"
)

// act is something that members try with what their role lets them write.
type act struct {
	title string
	verb  string
	work  bool // only what waits for quota and runs is in such a state
	of    func(s sample) request
}

// sample is an object by its state: a field of its spec, more metadata, and whether it waits or runs.
type sample struct {
	object func(field, metadata string) string
	in     func(suspend, fields, metadata, status string) string
}

func (s sample) waits(field string) string {
	return s.in("true", field, "", "conditions: [{type: Suspended, status: 'True'}]")
}

func (s sample) runs(suspend, field, metadata string) string {
	return s.in(suspend, field, metadata, "conditions: [{type: Running, status: 'True'}]")
}

const fewer, more = "n: 1", "n: 2"

var acts = []act{
	{"create it", "create", false, func(s sample) request { return created(s.object(fewer, "")) }},
	{"create it with an owner", "create", false, func(s sample) request {
		return created(s.object(fewer, "ownerReferences: [{kind: ConfigMap, name: c}]"))
	}},
	{"change its spec", "update", false, func(s sample) request { return becomes(s.object(more, ""), s.object(fewer, "")) }},
	{"change its spec while it waits", "update", true, func(s sample) request { return becomes(s.waits(more), s.waits(fewer)) }},
	{"change its spec while it runs", "update", true, func(s sample) request {
		return becomes(s.runs("false", more, ""), s.runs("false", fewer, ""))
	}},
	{"label it while it runs", "update", true, func(s sample) request {
		return becomes(s.runs("false", fewer, "labels: {a: b}"), s.runs("false", fewer, ""))
	}},
	{"start it", "update", true, func(s sample) request { return becomes(s.runs("false", fewer, ""), s.waits(fewer)) }},
	{"suspend it", "update", true, func(s sample) request {
		return becomes(s.runs("true", fewer, ""), s.runs("false", fewer, ""))
	}},
	{"add a finalizer", "update", false, func(s sample) request {
		return becomes(s.object(fewer, "finalizers: [a/b]"), s.object(fewer, ""))
	}},
	{"delete it in the background", "delete", false, func(s sample) request { return removed(s.object(fewer, ""), "Background") }},
	{"delete it otherwise", "delete", false, func(s sample) request { return removed(s.object(fewer, ""), "Orphan") }},
}

// webhook has what no policy judges, because the webhook of AppWrappers does.
var webhook = map[string]string{
	"appwrappers.workload.codeflare.dev: change its spec while it waits": "the webhook",
	"appwrappers.workload.codeflare.dev: start it":                       "the webhook",
}

func created(object string) request { return request{operation: admission.Create, object: object} }

func becomes(object, old string) request {
	return request{operation: admission.Update, object: object, old: old}
}

func removed(object, how string) request {
	return request{operation: admission.Delete, old: object, options: "propagationPolicy: " + how}
}

// samples are of each resource that the role of members lets them write.
func samples() map[string]sample {
	plain := func(version, kind string) sample {
		return sample{object: func(field, metadata string) string {
			return `{apiVersion: ` + version + `, kind: ` + kind + `, metadata: {name: w, ` + metadata + `}, spec: {` + field + `}}`
		}}
	}
	work := func(kind string) sample {
		in := startable[kind]
		return sample{func(field, metadata string) string { return in("true", field, metadata, "") }, in}
	}
	all := map[string]sample{
		"appwrappers.workload.codeflare.dev": work("AppWrapper"), "pytorchjobs.kubeflow.org": work("PyTorchJob"),
		"rayclusters.ray.io": work("RayCluster"), "rayjobs.ray.io": work("RayJob"),
		"runs.codeflare.dev": plain("codeflare.dev/v1alpha1", "Run"), "applications.codeflare.dev": plain("codeflare.dev/v1alpha1", "Application"),
		"datasets.codeflare.dev": plain("codeflare.dev/v1alpha1", "DataSet"), "podgroups.scheduling.x-k8s.io": plain("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
		"configmaps": plain("v1", "ConfigMap"), "secrets": plain("v1", "Secret"), "services": plain("v1", "Service"),
		"persistentvolumeclaims": plain("v1", "PersistentVolumeClaim"), "pods": plain("v1", "Pod"),
	}
	for version, kinds := range map[string][]string{
		"apps/v1": {"Deployment", "StatefulSet", "ReplicaSet"}, "batch/v1": {"Job"}, "jobset.x-k8s.io/v1alpha2": {"JobSet"},
		"leaderworkerset.x-k8s.io/v1": {"LeaderWorkerSet"}, "ray.io/v1": {"RayService"},
		"kubeflow.org/v1": {"TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"},
	} {
		group, _, _ := strings.Cut(version, "/")
		for _, kind := range kinds {
			all[strings.ToLower(kind)+"s."+group] = plain(version, kind)
		}
	}
	return all
}

// The page says first what is allowed: what the policies say of each act, with each resource of the role of members.
func TestThePageSaysWhatIsAllowed(t *testing.T) {
	platform, all := defences(t), samples()
	var table strings.Builder
	table.WriteString("| what members write |")
	for _, a := range acts {
		table.WriteString(" " + a.title + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(acts)) + "\n")
	verbs := verbsOf(clusterRolesWith(t, optionalParts())["mlbatch-edit"])
	for _, resource := range slices.Sorted(maps.Keys(verbs)) {
		s, known := all[resource]
		if !known {
			t.Errorf("members may %q %s: say here what it looks like", verbs[resource], resource)
			continue
		}
		fmt.Fprintf(&table, "| `%s` |", resource)
		for _, a := range acts {
			table.WriteString(" " + platform.verdict(t, resource, s, a, verbs[resource]) + " |")
		}
		table.WriteString("\n")
	}
	golden.Between(t, filepath.Join("..", "docs", "security.md"), "<!-- allowed: written by go test ./charts -update -->\n", "<!-- end of allowed -->", table.String())
}

// verdict is yes, or who refuses an act, or nothing if the kind has no such state.
func (d defence) verdict(t *testing.T, resource string, s sample, a act, verbs []string) string {
	t.Helper()
	if !slices.Contains(verbs, a.verb) {
		return "the role"
	}
	if a.work && s.in == nil || a.title == "change its spec" && s.in != nil {
		return ""
	}
	if by, is := webhook[resource+": "+a.title]; is {
		return by
	}
	r := a.of(s)
	var refused []string
	for _, policy := range judging(d.rules, r.resourceOf(t), admissionregistration.OperationType(r.operation)) {
		if len(judge(t, d.compiled[policy], r, false)) > 0 {
			refused = append(refused, "`"+strings.TrimPrefix(policy, "mlbatch-")+"`")
		}
	}
	if len(refused) == 0 {
		return "yes"
	}
	return strings.Join(refused, ", ")
}

// verbsOf are those of a role that write, by resource.
func verbsOf(role rbac.ClusterRole) map[string][]string {
	found := map[string][]string{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource = name(resource, group)
				for _, verb := range rule.Verbs {
					if slices.Contains(writes, verb) && !strings.Contains(resource, "/") {
						found[resource] = append(found[resource], verb)
					}
				}
			}
		}
	}
	return found
}
