// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// kueueWebhook is what the configurations of Kueue's two kinds of webhooks have in common.
type kueueWebhook struct {
	mutating bool
	kind     string
	group    string
	when     []admissionregistrationv1.MatchCondition
}

// webhooksOfKueue returns the webhooks that Kueue has with some values of the platform.
func webhooksOfKueue(t *testing.T, values map[string]any) (all []kueueWebhook) {
	t.Helper()
	add := func(name string, rules []admissionregistrationv1.RuleWithOperations, when []admissionregistrationv1.MatchCondition) {
		all = append(all, kueueWebhook{name[0] == 'm', strings.TrimSuffix(name[1:], ".kb.io"), rules[0].APIGroups[0], when})
	}
	for _, document := range strings.Split(must(renderLight(t, here(t), "mlbatch", values))(t).Manifest, "\n---\n") {
		switch parse(t, document).id() {
		case "MutatingWebhookConfiguration/kueue-mutating-webhook-configuration":
			for _, w := range read[admissionregistrationv1.MutatingWebhookConfiguration](t, document).Webhooks {
				add(w.Name, w.Rules, w.MatchConditions)
			}
		case "ValidatingWebhookConfiguration/kueue-validating-webhook-configuration":
			for _, w := range read[admissionregistrationv1.ValidatingWebhookConfiguration](t, document).Webhooks {
				add(w.Name, w.Rules, w.MatchConditions)
			}
		}
	}
	return all
}

// While Kueue does not answer, nobody could create what has a webhook, although Kueue ignores it.
func TestKueueHasWebhooksOnlyForWhatItQueues(t *testing.T) {
	const least = "integrations: {frameworks: [workload.codeflare.dev/appwrapper, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster"
	its := []string{"clusterqueue", "cohort", "resourceflavor", "workload"}
	for name, row := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"the platform's kinds": {nil, []string{
			"appwrapper", "jaxjob", "jobset", "paddlejob", "pytorchjob", "raycluster", "rayjob", "rayservice", "tfjob", "xgboostjob",
		}},
		"Jobs, too":            {map[string]any{"kueue": kueueReads(least + ", batch/job]}")}, []string{"appwrapper", "job", "pytorchjob", "raycluster", "rayjob"}},
		"pods of StatefulSets": {map[string]any{"kueue": kueueReads(least + ", statefulset]}")}, []string{"appwrapper", "pod", "pytorchjob", "raycluster", "rayjob", "statefulset"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[bool][]string{}
			for _, w := range webhooksOfKueue(t, row.values) {
				got[w.mutating] = append(got[w.mutating], w.kind)
			}
			for mutating := range got {
				want := slices.Sorted(slices.Values(append(slices.Clone(its), row.want...)))
				if mutating { // Kueue validates Cohorts only
					want = slices.DeleteFunc(want, func(kind string) bool { return kind == "cohort" })
				}
				if diff := cmp.Diff(want, slices.Sorted(slices.Values(got[mutating]))); diff != "" {
					t.Errorf("mutating: %t (-want +got)\n%s", mutating, diff)
				}
			}
			if len(got) != 2 {
				t.Errorf("there are webhooks of %d kinds, want both", len(got))
			}
		})
	}
}

// While Kueue does not answer, what is deleted would stay with its finalizers, and its pods with it.
func TestKueueDoesNotValidateWhatIsBeingDeleted(t *testing.T) {
	for _, w := range webhooksOfKueue(t, nil) {
		var want []admissionregistrationv1.MatchCondition
		if !w.mutating && w.group != "kueue.x-k8s.io" {
			want = []admissionregistrationv1.MatchCondition{{Name: "not-being-deleted", Expression: "!has(object.metadata.deletionTimestamp)"}}
		}
		if diff := cmp.Diff(want, w.when); diff != "" {
			t.Errorf("%s, mutating: %t (-want +got)\n%s", w.kind, w.mutating, diff)
		}
	}
}

// An API that is registered and does not answer keeps each namespace of the cluster from being deleted.
func TestTheVisibilityAPIIsRegisteredIfItIsWanted(t *testing.T) {
	gate := func(enabled bool) any { return map[string]any{"name": "VisibilityOnDemand", "enabled": enabled} }
	others := []any{map[string]any{"name": "DisableWaitForPodsReady", "enabled": true}, map[string]any{"name": "FinishOrphanedWorkloads", "enabled": false}}
	for name, row := range map[string]struct {
		gates []any
		want  int
	}{
		"it is":                    {append(others, gate(true)), 2},
		"it is not":                {append(others, gate(false)), 0},
		"other gates are set only": {others, 0},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{"kueue": map[string]any{"controllerManager": map[string]any{"featureGates": row.gates}}}
			manifest := must(renderLight(t, here(t), "mlbatch", values))(t).Manifest
			if got := strings.Count(manifest, "\nkind: APIService\n"); got != row.want {
				t.Errorf("%d APIServices are registered, want %d", got, row.want)
			}
		})
	}
}
