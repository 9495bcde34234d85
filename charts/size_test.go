// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
)

// Whatever makes pods is bounded, wherever the lists are. Controllers create more, because they add to what members
// wrote, and change what is stored already.
func TestWhatMembersWriteIsBounded(t *testing.T) {
	size := onePolicy(t, "size")
	const containers = "containers: [{name: c, image: a, "
	for name, c := range map[string]struct {
		entry, around string
		most, created int
	}{
		"containers":      {"{name: c}", "containers: [%]", 400, 500},
		"init containers": {"{name: c}", "initContainers: [%]", 400, 500},
		"volumes":         {"{name: v}", "volumes: [%]", 400, 500},
		"tolerations":     {"{key: k}", "tolerations: [%]", 200, 500},
		"sysctls":         {"{name: s}", "securityContext: {sysctls: [%]}", 200, 500},
		"variables":       {"{name: v}", containers + "env: [%]}]", 3000, 4000},
		"ports":           {"{containerPort: 1}", containers + "ports: [%]}]", 3000, 4000},
		"capabilities":    {"KILL", containers + "securityContext: {capabilities: {add: [%]}}}]", 3000, 4000},
		"files":           {"{path: f}", "volumes: [{name: v, downwardAPI: {items: [%]}}]", 3000, 4000},
		"sources":         {"{secret: {}}", "volumes: [{name: v, projected: {sources: [%]}}]", 3000, 4000},
	} {
		for kind, of := range templateOf {
			for _, count := range []int{0, c.most, c.most + 1, c.created, c.created + 1} {
				object := of(strings.Replace(c.around, "%", strings.TrimPrefix(strings.Repeat(", "+c.entry, count), ", "), 1))
				for operation, old := range map[admission.Operation]string{admission.Create: "", admission.Update: object} {
					r := request{operation: operation, object: object, old: old}
					if got := judge(t, size, r, false); (count > c.most) != (len(got) == 1) {
						t.Errorf("%s with %d %s: %s: %q", kind, count, name, operation, got)
					}
					if got := judge(t, size, r, true); (count > c.created && operation == admission.Create) != (len(got) == 1) {
						t.Errorf("%s with %d %s, by a controller: %s: %q", kind, count, name, operation, got)
					}
				}
				if name != "containers" {
					break // the places are those of containers
				}
			}
		}
	}
}

// The number of groups is bounded, and of what a request says without pods.
func TestGroupsAndLabelsAreBounded(t *testing.T) {
	size := onePolicy(t, "size")
	many := func(count int, entry string) string { return strings.Repeat(entry+", ", count) }
	for name, c := range map[string]struct {
		object  string
		refused bool
	}{
		"64 worker groups":        {rayClusterWith("workerGroupSpecs: [" + many(64, "{}") + "]"), false},
		"65 worker groups":        {rayClusterWith("workerGroupSpecs: [" + many(65, "{}") + "]"), true},
		"65 of a RayJob":          {rayJobWith("workerGroupSpecs: [" + many(65, "{}") + "]"), true},
		"65 of a RayService":      {rayServiceWith("rayClusterConfig: {workerGroupSpecs: [" + many(65, "{}") + "]}"), true},
		"65 jobs":                 {workWith("jobset.x-k8s.io/v1alpha2", "JobSet", "replicatedJobs: ["+many(65, "{}")+"]"), true},
		"labels of a PodGroup":    {`{"kind":"PodGroup","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"name":"g","labels":{` + keyed(60_000, `"%d":""`) + `}}}`, true},
		"labels of an AppWrapper": {`{"kind":"AppWrapper","apiVersion":"workload.codeflare.dev/v1beta2","metadata":{"name":"a","labels":{` + keyed(60_000, `"%d":""`) + `}}}`, true},
		"some labels":             {`{"kind":"AppWrapper","apiVersion":"workload.codeflare.dev/v1beta2","metadata":{"name":"a","labels":{` + keyed(6_000, `"%d":""`) + `}}}`, false},
		"no spec":                 {`{kind: Deployment, apiVersion: apps/v1, metadata: {name: d}}`, false},
		"an empty spec":           {`{kind: Deployment, apiVersion: apps/v1, metadata: {name: d}, spec: {}}`, false},
	} {
		if got := judge(t, size, request{operation: admission.Create, object: c.object}, false); c.refused != (len(got) == 1) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What was stored before there was a bound cannot be changed, also not to something small that nobody would judge.
// But it can go: programs without the verb control remove their finalizers.
func TestWhatIsStoredAndTooLargeCanOnlyGo(t *testing.T) {
	size := onePolicy(t, "size")
	of := func(metadata string, containers int) string {
		return "{kind: Job, apiVersion: batch/v1, metadata: {name: j" + metadata + "}, spec: {template: {spec: {containers: [" +
			strings.Repeat("{name: c}, ", containers) + "]}}}}"
	}
	const deleted, held = ", deletionTimestamp: 2026-11-28T10:00:00Z", ", finalizers: [example.com/a]"
	for name, c := range map[string]struct {
		object  string
		refused bool
	}{
		"nothing":                        {of(held, 501), true},
		"the spec, to something small":   {of(held, 1), true},
		"the finalizer":                  {of("", 501), true},
		"the finalizer of a deleted one": {of(deleted, 501), false},
		"a label of a deleted one":       {of(deleted+", labels: {a: b}", 501), true},
		"an annotation of a deleted one": {of(deleted+", annotations: {a: b}", 501), true},
		"an owner of a deleted one":      {of(deleted+", ownerReferences: [{kind: Job, name: o}]", 501), true},
		"the spec of a deleted one":      {of(deleted, 502), true},
	} {
		old := of(held, 501)
		if strings.Contains(c.object, deleted) {
			old = of(deleted+held, 501)
		}
		if got := judge(t, size, request{operation: admission.Update, object: c.object, old: old}, false); c.refused != (len(got) == 1) {
			t.Errorf("%s changes: %q", name, got)
		}
	}
}

// What no policy bounds is judged by all others.
func TestWithoutTheBoundAllIsJudged(t *testing.T) {
	bounded := func(policies map[string]admissionregistration.ValidatingAdmissionPolicy) (found []string) {
		for name, policy := range policies {
			if slices.ContainsFunc(policy.Spec.MatchConditions, func(c admissionregistration.MatchCondition) bool { return c.Name == "small" }) {
				found = append(found, strings.TrimPrefix(name, "mlbatch-"))
			}
		}
		slices.Sort(found)
		return found
	}
	all := policiesWith(t, nil)
	if got, want := bounded(all), []string{"growth", "labels", "placement", "pod-security", "priorities", "started"}; !slices.Equal(got, want) {
		t.Errorf("bounded are %q, not %q", got, want)
	}
	for _, name := range bounded(all) {
		for _, rule := range all["mlbatch-"+name].Spec.MatchConstraints.ResourceRules {
			mustBeBounded(t, all, rule)
		}
	}
	if got := bounded(policiesWith(t, map[string]any{"policies": map[string]any{"size": map[string]any{"enabled": false}}})); len(got) > 0 {
		t.Errorf("nobody refuses what %q do not judge", got)
	}
}

// mustBeBounded: what a policy does not judge for its size, mlbatch-size refuses.
func mustBeBounded(t *testing.T, all map[string]admissionregistration.ValidatingAdmissionPolicy, rule admissionregistration.NamedRuleWithOperations) {
	t.Helper()
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, operation := range rule.Operations {
				if resource != "pods/status" && !slices.Contains(judging(all, name(resource, group), operation), "mlbatch-size") {
					t.Errorf("nobody bounds %s of %s (%s)", resource, group, operation)
				}
			}
		}
	}
}

// name is RESOURCE.GROUP/SUBRESOURCE.
func name(resource, group string) string {
	resource, sub, _ := strings.Cut(resource, "/")
	if group != "" {
		resource += "." + group
	}
	if sub != "" {
		resource += "/" + sub
	}
	return resource
}
