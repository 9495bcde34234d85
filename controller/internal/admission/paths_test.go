// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http/httptest"
	"os"
	"regexp"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/internal/config"
)

// The chart has the paths of the code. Upstream's server serves the first and the last path,
// and treats every call of the first as a creation.
func TestTheChartCallsWhatIsServed(t *testing.T) {
	server := webhook.NewServer(webhook.Options{})
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme(t), WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Setup(mgr, config.Default().AppWrapper, "mlbatch-system"); err != nil {
		t.Fatal(err)
	}
	want := map[string]admissionregistrationv1.FailurePolicyType{
		"CREATE /mutate-workload-codeflare-dev-v1beta2-appwrapper":     admissionregistrationv1.Fail,
		"UPDATE /update-workload-codeflare-dev-v1beta2-appwrapper":     admissionregistrationv1.Ignore,
		"CREATE /validate-workload-codeflare-dev-v1beta2-appwrapper":   admissionregistrationv1.Fail,
		"UPDATE /validate-workload-codeflare-dev-v1beta2-appwrapper":   admissionregistrationv1.Fail,
		"DELETE /foreground-workload-codeflare-dev-v1beta2-appwrapper": admissionregistrationv1.Fail,
	}
	for _, hook := range renderedWebhooks(t) {
		path := *hook.ClientConfig.Service.Path
		if _, pattern := server.WebhookMux().Handler(httptest.NewRequest("POST", path, nil)); pattern == "" {
			t.Errorf("the controller does not serve %s", path)
		}
		for _, operation := range hook.Rules[0].Operations {
			call := string(operation) + " " + path
			if policy, ok := want[call]; !ok || policy != *hook.FailurePolicy {
				t.Errorf("the chart calls %s with the failure policy %s", call, *hook.FailurePolicy)
			}
			delete(want, call)
		}
	}
	if len(want) > 0 {
		t.Errorf("the chart does not call %v", want)
	}
}

// renderedWebhooks returns the webhooks of both configurations.
func renderedWebhooks(t *testing.T) []admissionregistrationv1.MutatingWebhook {
	t.Helper()
	manifest, err := os.ReadFile("../../../charts/testdata/appwrapper/defaults.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []admissionregistrationv1.MutatingWebhook
	for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(string(manifest), -1) {
		var found admissionregistrationv1.MutatingWebhookConfiguration // a ValidatingWebhookConfiguration has the same fields
		if err := yaml.Unmarshal([]byte(document), &found); err != nil {
			t.Fatal(err)
		}
		all = append(all, found.Webhooks...)
	}
	return all
}
