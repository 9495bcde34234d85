// SPDX-License-Identifier: Apache-2.0

package othercontroller

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

type configurations = []admissionregistrationv1.MutatingWebhookConfiguration

func noConfigurations(context.Context) (configurations, error) { return nil, nil }

// hook calls the path that controller-runtime derives from a kind.
func hook(namespace, service, group, resource string) admissionregistrationv1.MutatingWebhook {
	path := "/mutate-" + strings.ReplaceAll(group, ".", "-") + "-v1beta2-" + strings.TrimSuffix(resource, "s")
	return admissionregistrationv1.MutatingWebhook{
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service, Path: &path},
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, Resources: []string{resource},
		}}},
	}
}

func configuration(name string, hooks ...admissionregistrationv1.MutatingWebhook) admissionregistrationv1.MutatingWebhookConfiguration {
	return admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}
}

func TestWhoAnswersForAppWrappers(t *testing.T) {
	const workload = "workload.codeflare.dev"
	kueue := configuration("kueue", hook("kueue-system", "kueue-webhook", "kueue.x-k8s.io", "workloads"), hook("kueue-system", "kueue-webhook", workload, "appwrappers"))
	ours := configuration("ours", hook("own", "appwrapper-webhook-service", workload, "appwrappers"))
	byURL := configuration("url", hook("", "", workload, "appwrappers"))
	byURL.Webhooks[0].ClientConfig.Service = nil
	rhoai := configuration("codeflare-operator", hook("rhoai", "codeflare", "ray.io", "rayclusters"), hook("rhoai", "codeflare", workload, "appwrappers"))
	kyverno := configuration("kyverno", hook("kyverno", "kyverno-svc", workload, "appwrappers"))
	kyverno.Webhooks[0].ClientConfig.Service.Path = ptr.To("/mutate/fail")
	noPath := configuration("no-path", hook("site", "defaults", workload, "appwrappers"))
	noPath.Webhooks[0].ClientConfig.Service.Path = nil
	second := configuration("second", hook("mlbatch-2", "appwrapper-webhook-service", workload, "appwrappers"))
	for name, tc := range map[string]struct {
		all     configurations
		pods    string // namespace/service that has a pod
		waiting string // namespace of one of our controllers that waits
		want    string
	}{
		"only we, and Kueue": {all: configurations{kueue, ours}, pods: "kueue-system/kueue-webhook own/appwrapper-webhook-service"},
		"an operator with an AppWrapper controller inside": {
			all: configurations{kueue, ours, rhoai}, pods: "kueue-system/kueue-webhook rhoai/codeflare",
			want: "pod p in namespace rhoai, which MutatingWebhookConfiguration codeflare-operator calls"},
		"Kueue with a configuration for each kind": {
			all:  configurations{configuration("kueue-appwrapper", kueue.Webhooks[1]), configuration("kueue-workload", kueue.Webhooks[0])},
			pods: "kueue-system/kueue-webhook"},
		"policies and defaults of a site":   {all: configurations{kyverno, noPath}, pods: "kyverno/kyverno-svc site/defaults"},
		"a second one of ours, at work":     {all: configurations{second}, pods: "mlbatch-2/appwrapper-webhook-service", want: "pod p in namespace mlbatch-2, which MutatingWebhookConfiguration second calls"},
		"a second one of ours, that waits":  {all: configurations{second}, pods: "mlbatch-2/appwrapper-webhook-service", waiting: "mlbatch-2"},
		"something that is not of the kind": {all: configurations{byURL}, pods: "/"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &webhooks{
				own:  types.NamespacedName{Namespace: "own", Name: "appwrapper-webhook-service"},
				list: func(context.Context) (configurations, error) { return tc.all, nil },
				now:  time.Now,
				pod: func(_ context.Context, service types.NamespacedName) (string, error) {
					if strings.Contains(tc.pods, service.String()) {
						return "p", nil
					}
					return "", nil
				},
			}
			if got, err := w.server(t.Context(), map[string]bool{tc.waiting: true}); err != nil || got != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestWhoIsJustAwayMayComeBack(t *testing.T) {
	now, pod := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), ""
	w := &webhooks{
		own: types.NamespacedName{Namespace: "own", Name: "appwrapper-webhook-service"},
		list: func(context.Context) (configurations, error) {
			return configurations{configuration("rhoai", hook("rhoai", "codeflare", "workload.codeflare.dev", "appwrappers"))}, nil
		},
		pod: func(context.Context, types.NamespacedName) (string, error) { return pod, nil },
		now: func() time.Time { return now },
	}
	for i, look := range []struct {
		after time.Duration
		pod   string
		waits bool
	}{
		{after: 0, waits: true},
		{after: 55 * time.Second, waits: true},
		{after: 5 * time.Second, pod: "p", waits: true},
		{after: 5 * time.Minute, waits: true},
		{after: 59 * time.Second, waits: true},
		{after: time.Second},
	} {
		now, pod = now.Add(look.after), look.pod
		who, err := w.server(t.Context(), nil)
		if err != nil || (who != "") != look.waits {
			t.Errorf("look %d: %q, %v", i+1, who, err)
		}
	}
}

// A controller that elects no leader must be able to restart without finding our claim.
func TestWhoWaitsForAPodClaimsNothing(t *testing.T) {
	ours := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "own"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("us")}}
	pod := "p"
	s := signs{
		&leases{
			own: "own", elects: true, now: time.Now, seen: map[types.NamespacedName]sighting{},
			list: func(context.Context) ([]coordinationv1.Lease, error) {
				return []coordinationv1.Lease{*ours.DeepCopy()}, nil
			},
			annotate: func(_ context.Context, _ *coordinationv1.Lease, holder *string) error {
				ours.Annotations = map[string]string{waits: ptr.Deref(holder, "")}
				return nil
			},
		},
		&webhooks{
			list: func(context.Context) (configurations, error) {
				if pod == "" {
					return nil, nil
				}
				return configurations{configuration("second", hook("mlbatch-2", "service", "workload.codeflare.dev", "appwrappers"))}, nil
			},
			pod: func(context.Context, types.NamespacedName) (string, error) { return pod, nil }, now: time.Now,
		},
	}
	for _, p := range []string{"p", ""} {
		pod = p
		who, err := s.other(t.Context())
		if err != nil || (who != "") != (p != "") || isWaiting(&ours) != (p != "") {
			t.Errorf("pod %q: other %q, %v; annotations %v", p, who, err, ours.Annotations)
		}
	}
}
