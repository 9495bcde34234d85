// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// everyPart are the documents of the umbrella chart with all parts, by kind.
func everyPart(t *testing.T) map[string][]string {
	t.Helper()
	return everyPartOn(t, must(versions())(t).LocalCluster.Kubernetes)
}

func everyPartOn(t *testing.T, kubernetes string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, document := range strings.Split(must(renderFor(t, kubernetes, "mlbatch", optionalParts()))(t).Manifest, "\n---\n") {
		kind := parse(t, document).Kind
		all[kind] = append(all[kind], document)
	}
	return all
}

// definitionsOf are the CRDs of the platform, by name.
func definitionsOf(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinitionSpec {
	t.Helper()
	return definitionsOn(t, must(versions())(t).LocalCluster.Kubernetes)
}

func definitionsOn(t *testing.T, kubernetes string) map[string]apiextensionsv1.CustomResourceDefinitionSpec {
	t.Helper()
	all := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, document := range everyPartOn(t, kubernetes)["CustomResourceDefinition"] {
		crd := read[apiextensionsv1.CustomResourceDefinition](t, document)
		all[crd.Name] = crd.Spec
	}
	return all
}

func TestTheChartsDefineTheKindsOfTheTableOfParts(t *testing.T) {
	all := definitionsOf(t)
	for _, kind := range parts.Kinds() {
		spec, defined := all[kind.Definition()]
		served := slices.ContainsFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Served && v.Name == kind.Version
		})
		if !defined || !served || spec.Names.Kind != kind.Name {
			t.Errorf("no chart defines %s in version %s as the kind %s", kind.Definition(), kind.Version, kind.Name)
		}
	}
}

// A part that defines a kind has a line in templates/roles.yaml. Kueue's kinds have a test of their own.
func TestMembersSeeEveryKindOfTheParts(t *testing.T) {
	notForMembers := []string{
		"elasticquotas.scheduling.x-k8s.io",           // another way to limit teams, which nothing reads here
		"disaggregatedsets.disaggregatedset.x-k8s.io", // a kind of LeaderWorkerSet that Kueue does not queue
	}
	role := clusterRolesWith(t, optionalParts())["mlbatch-edit"]
	for name, spec := range definitionsOf(t) {
		sees := allows(role, "get", spec.Group, spec.Names.Plural)
		if spec.Group != "kueue.x-k8s.io" && sees == slices.Contains(notForMembers, name) {
			t.Errorf("mlbatch-edit may get %s: %t. Either list it, or omit it on purpose", name, sees)
		}
	}
}

// The installer probes every webhook, with an object of one kind that the webhook judges.
func TestTheInstallerProbesEveryWebhook(t *testing.T) {
	judges := map[string][]string{} // the resources that a service judges
	add := func(client admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					judges[client.Service.Name] = append(judges[client.Service.Name], resource+"."+group)
				}
			}
		}
	}
	all := everyPart(t)
	for _, document := range all["ValidatingWebhookConfiguration"] {
		for _, w := range read[admissionregistrationv1.ValidatingWebhookConfiguration](t, document).Webhooks {
			add(w.ClientConfig, w.Rules)
		}
	}
	for _, document := range all["MutatingWebhookConfiguration"] {
		for _, w := range read[admissionregistrationv1.MutatingWebhookConfiguration](t, document).Webhooks {
			add(w.ClientConfig, w.Rules)
		}
	}
	for service, judged := range judges {
		if !slices.ContainsFunc(parts.Kinds(), func(k parts.Kind) bool { return k.Probe != "" && slices.Contains(judged, k.Definition()) }) {
			t.Errorf("the installer does not wait for the webhooks of service %s: give one of %v a Probe in the table of parts", service, judged)
		}
	}
	if len(judges) < 5 {
		t.Errorf("only %d services have webhooks", len(judges))
	}
}

// Policies let operators do what members may not. The controller of Runs may in the namespaces of
// teams alone, by a role of its own.
func TestEveryOperatorActsAsAController(t *testing.T) {
	w := build(t, must(render(t, "mlbatch", optionalParts()))(t).Manifest)
	var controllers []string
	for _, b := range w.bindings {
		for _, subject := range b.Subjects {
			if b.Name == "mlbatch-control" && subject.Kind == rbacv1.ServiceAccountKind {
				controllers = append(controllers, subject.Namespace+"/"+subject.Name)
			}
		}
	}
	for _, d := range w.deployments {
		part, known := parts.Of(d.Name)
		if !known {
			t.Errorf("the Deployment %s belongs to no part in the table", d.Name)
		}
		account := d.Namespace + "/" + d.Spec.Template.Spec.ServiceAccountName
		if acts := slices.Contains(controllers, account); acts == (part.Name == "codeflare") {
			t.Errorf("the ClusterRoleBinding mlbatch-control names %s of part %s: %t", account, part.Name, acts)
		}
	}
}
