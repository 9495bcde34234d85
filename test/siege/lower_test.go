// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/siege/attacks"
)

// lower disables a policy in each team, until the test ends. No answer says when the API server has read that.
func (w *world) lower(t *testing.T, fronts []*front) {
	t.Helper()
	for _, f := range fronts {
		if f.without == attacks.Webhook {
			w.lowerWebhooks(t, f.namespace)
			continue
		}
		selector := `{"spec":{"matchResources":{"namespaceSelector":{"matchExpressions":%s}}}}`
		elsewhere := fmt.Sprintf(`[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["%s"]}]`, f.namespace)
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
		binding.Name = "mlbatch-" + f.without
		w.patch(t, binding, types.MergePatchType, fmt.Sprintf(selector, elsewhere), fmt.Sprintf(selector, "null"))
		if f.without == "pod-security" {
			namespace := &corev1.Namespace{}
			namespace.Name = f.namespace
			level := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"%s"}}}`
			w.patch(t, namespace, types.MergePatchType, fmt.Sprintf(level, "privileged"), fmt.Sprintf(level, "baseline"))
		}
	}
	time.Sleep(5 * time.Second)
}

// lowerWebhooks disables those of AppWrappers, which judge, and those which count side-cars and the like.
func (w *world) lowerWebhooks(t *testing.T, namespace string) {
	t.Helper()
	validating, mutating := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
	validating.Name, mutating.Name = "appwrapper-validating-webhook-configuration", "appwrapper-mutating-webhook-configuration"
	for _, c := range []client.Object{validating, mutating} {
		selector := `[{"op":"add","path":"/webhooks/0/namespaceSelector","value":{"matchExpressions":[%s]}}]`
		elsewhere := fmt.Sprintf(`{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["%s"]}`, namespace)
		w.patch(t, c, types.JSONPatchType, fmt.Sprintf(selector, elsewhere), fmt.Sprintf(selector, ""))
	}
}

// patch changes an object until the test ends.
func (w *world) patch(t *testing.T, o client.Object, kind types.PatchType, change, back string) {
	t.Helper()
	if err := w.admin.Patch(t.Context(), o, client.RawPatch(kind, []byte(change))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.admin.Patch(context.WithoutCancel(t.Context()), o, client.RawPatch(kind, []byte(back))); err != nil {
			t.Error(err)
		}
	})
}
