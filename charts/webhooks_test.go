// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// calls are the requests about which the API server asks a webhook.
type calls struct {
	webhook, service   string
	rules              []admissionregistrationv1.RuleWithOperations
	namespaces, labels *metav1.LabelSelector
}

func callsOfWebhooks(t *testing.T, manifest string) (all []calls) {
	t.Helper()
	for _, document := range strings.Split(manifest, "\n---\n") {
		switch kind, _, _ := strings.Cut(parse(t, document).id(), "/"); kind {
		case "MutatingWebhookConfiguration":
			for _, w := range read[admissionregistrationv1.MutatingWebhookConfiguration](t, document).Webhooks {
				all = append(all, calls{w.Name, w.ClientConfig.Service.Name, w.Rules, w.NamespaceSelector, w.ObjectSelector})
			}
		case "ValidatingWebhookConfiguration":
			for _, w := range read[admissionregistrationv1.ValidatingWebhookConfiguration](t, document).Webhooks {
				all = append(all, calls{w.Name, w.ClientConfig.Service.Name, w.Rules, w.NamespaceSelector, w.ObjectSelector})
			}
		}
	}
	return all
}

func ofTeams(namespaces *metav1.LabelSelector) bool {
	return namespaces != nil && namespaces.MatchLabels["mlbatch-team-namespace"] == "true"
}

// labelledOnly: the operator has marked the objects as its own.
func labelledOnly(labels *metav1.LabelSelector) bool {
	return labels != nil && slices.ContainsFunc(labels.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Operator == metav1.LabelSelectorOpExists && strings.Contains(r.Key, "sigs.k8s.io/")
	})
}

// While an operator is away, its webhooks refuse what they are asked about. That may be its own kinds, and what is its
// own of other kinds. What others do elsewhere in the cluster, also the deletion of their namespaces, goes on.
func TestNoWebhookIsAskedAboutOthers(t *testing.T) {
	const every = "integrations: {frameworks: [workload.codeflare.dev/appwrapper, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster, " +
		"batch/job, pod, deployment, statefulset, leaderworkerset.x-k8s.io/leaderworkerset]}"
	on := map[string]any{"enabled": true}
	rendered := must(render(t, "mlbatch", map[string]any{"jobset": on, "leaderworkerset": on, "codeflare": on, "kueue": kueueReads(every)}))(t)
	own := []string{"kueue.x-k8s.io"}
	for _, kind := range parts.Kinds() {
		own = append(own, kind.Group)
	}
	all := callsOfWebhooks(t, rendered.Manifest)
	for _, w := range all {
		for _, rule := range w.rules {
			for _, group := range rule.APIGroups {
				others := !slices.Contains(own, group)
				if others && !ofTeams(w.namespaces) && !labelledOnly(w.labels) {
					t.Errorf("%s of %s is asked about %v of every namespace", w.webhook, w.service, rule.Resources)
				}
				if w.service == "kueue-webhook-service" && group != "kueue.x-k8s.io" && !ofTeams(w.namespaces) {
					t.Errorf("Kueue is asked about %v of namespaces that are no team's", rule.Resources)
				}
			}
			if slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) || slices.Contains(rule.Resources, "*") {
				t.Errorf("%s of %s is asked about everything", w.webhook, w.service)
			}
			if slices.Contains(rule.Operations, admissionregistrationv1.Delete) && w.webhook != "foreground.appwrapper.kb.io" {
				t.Errorf("%s of %s can keep %v from being deleted", w.webhook, w.service, rule.Resources)
			}
		}
	}
	if len(all) < 20 {
		t.Errorf("there are %d webhooks", len(all))
	}
}
