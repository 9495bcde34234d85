// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// The controller is asked about deletions in the foreground, and only those pay for it.
func TestOnlyDeletionsInTheForegroundAreAskedAbout(t *testing.T) {
	policy := admissionregistration.ValidatingAdmissionPolicy{}
	policy.Spec.FailurePolicy = ptr.To(admissionregistration.Fail)
	policy.Spec.Validations = []admissionregistration.Validation{{Expression: "false", Message: "asked"}}
	for _, document := range strings.Split(must(render(t, "appwrapper", nil))(t).Manifest, "\n---\n") {
		if parse(t, document).id() != "ValidatingWebhookConfiguration/appwrapper-validating-webhook-configuration" {
			continue
		}
		for _, w := range read[admissionregistration.ValidatingWebhookConfiguration](t, document).Webhooks {
			if w.Name == "foreground.appwrapper.kb.io" {
				policy.Spec.MatchConditions = w.MatchConditions
			}
		}
	}
	if len(policy.Spec.MatchConditions) == 0 {
		t.Fatal("there is no such webhook, or it is always asked")
	}
	const plain, marked = "{name: a}", "{name: a, finalizers: [foregroundDeletion]}"
	asked := compile(t, policy)
	for options, c := range map[string]struct {
		metadata string
		want     bool
	}{
		"propagationPolicy: Foreground": {plain, true},
		"propagationPolicy: Background": {marked, false},
		"propagationPolicy: Orphan":     {plain, false},
		"gracePeriodSeconds: 0":         {plain, false},
		"gracePeriodSeconds: 1":         {marked, true},
	} {
		r := request{operation: admission.Delete, old: "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: " + c.metadata + "}", options: options}
		if got := len(judge(t, asked, r, false)) > 0; got != c.want {
			t.Errorf("%s of %s is asked about: %t", options, c.metadata, got)
		}
	}
}
