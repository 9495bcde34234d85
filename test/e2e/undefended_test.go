// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Each attack succeeds where the defences are off, and mlbatch audit finds it. Otherwise its
// refusal would prove nothing. Each has a namespace and quota of its own, so that they run beside
// each other.
func TestUndefendedAttacksSucceed(t *testing.T) {
	testenv.Test(t, features.New("undefended").Assess("every attack succeeds", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		requires(t, needs.Pods, needs.RayPods, needs.EveryKind, needs.Machine)
		field := keep(t, cfg, "mlbatch-e2e-undefended", "default")
		field.apply(ctx, field.file(undefendedTeams()))
		referee := tell(t, cfg, undefended(0), "mallory", needs.Machine)
		referee.lowerDefences(ctx)
		t.Run("attacks", func(t *testing.T) {
			for i, a := range attacks {
				t.Run(a.name, func(t *testing.T) {
					s := begin(t, cfg, undefended(i), "mallory", needs.Machine)
					t.Parallel()
					s.setAside()
					t.Cleanup(s.sweep)
					s.befriend(ctx, t, cfg)
					s.succeeds(ctx, a)
				})
			}
		})
		return ctx
	}).Feature())
}

// undefended is the namespace of an attack.
func undefended(i int) string { return fmt.Sprintf("e2e-undefended-%d", i) }

// undefendedTeams are teams without a level of Pod Security and without a list of priorities.
func undefendedTeams() string {
	var teams strings.Builder
	teams.WriteString(`
cohort: ""
controller: {serviceAccount: {namespace: mlbatch-system}}
podSecurity: {enforce: privileged, warn: ""}
priorities: []
flavors: [{name: e2e-real, create: false}, {name: e2e-simulated, create: false}]
teams:
`)
	for i := range attacks {
		fmt.Fprintf(&teams, `
  - name: %s
    users: [mallory]
    quota:
      e2e-real: {cpu: 1, memory: 4Gi, pods: 20, nvidia.com/gpu: 0}
      e2e-simulated: {cpu: 8, memory: 64Gi, pods: 20, nvidia.com/gpu: 8}
`, undefended(i))
	}
	return teams.String()
}

// setAside announces that what is found in the namespace counts for nothing until all of it is gone.
func (s *story) setAside() {
	auditing.expect(s.namespace)
	quota.Expect(types.NamespacedName{Namespace: s.namespace})
}

// succeeds tries one attack and looks for what it has done.
func (s *story) succeeds(ctx context.Context, a attack) {
	s.t.Helper()
	if a.prepare != nil {
		a.prepare(s, ctx)
	}
	s.makes(ctx, a.victims)
	s.until(ctx, "nobody refuses it", func(ctx context.Context) (string, error) {
		if err := a.try(s, ctx); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
	if a.found != (found{}) {
		s.until(ctx, "mlbatch audit finds it", func(ctx context.Context) (string, error) { return s.auditFinds(ctx, a.found) })
	}
	s.until(ctx, "it succeeds", func(ctx context.Context) (string, error) { return a.won(s, ctx) })
}

// lowerDefences takes the policies of the API server, and then what the webhook of AppWrappers
// refuses, out of force in the namespaces of attacks, until the test ends.
func (s *story) lowerDefences(ctx context.Context) {
	s.t.Helper()
	names := make([]string, len(attacks))
	for i := range attacks {
		names[i] = undefended(i)
	}
	elsewhere := fmt.Sprintf(`[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["%s"]}]`, strings.Join(names, `","`))
	s.judge(ctx, elsewhere)
	s.t.Cleanup(func() { s.judge(context.Background(), "[]") })
	node := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: s.namespace}}
	node.Spec = job("probe", "50m", "linger", "0s").Spec.Template.Spec
	node.Spec.NodeName = "any"
	s.until(ctx, "the policies are out of force", func(ctx context.Context) (string, error) {
		if err := s.admin.GetControllerRuntimeClient().Create(ctx, node.DeepCopy(), client.DryRunAll); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
}

// judge sets which namespaces the policies and our webhook judge: those of teams that match.
func (s *story) judge(ctx context.Context, matching string) {
	s.t.Helper()
	admin := s.admin.GetControllerRuntimeClient()
	bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	if err := admin.List(ctx, bindings, client.MatchingLabels{"app.kubernetes.io/part-of": "mlbatch"}); err != nil || len(bindings.Items) == 0 {
		s.t.Errorf("there are %d policies (%v)", len(bindings.Items), err)
	}
	inTeams := fmt.Sprintf(`{"spec":{"matchResources":{"namespaceSelector":{"matchExpressions":%s}}}}`, matching)
	for i := range bindings.Items {
		if err := admin.Patch(ctx, &bindings.Items[i], client.RawPatch(types.MergePatchType, []byte(inTeams))); err != nil {
			s.t.Error(err)
		}
	}
	webhooks := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "appwrapper-validating-webhook-configuration"}}
	anywhere := fmt.Sprintf(`[{"op":"add","path":"/webhooks/0/namespaceSelector","value":{"matchExpressions":%s}}]`, matching)
	if err := admin.Patch(ctx, webhooks, client.RawPatch(types.JSONPatchType, []byte(anywhere))); err != nil {
		s.t.Error(err)
	}
}

// sweep removes all that an attack has left in its namespace, whoever would keep it.
func (s *story) sweep() {
	if s.t.Failed() {
		s.explain()
	}
	err := await(context.Background(), func(ctx context.Context) (string, error) {
		for _, list := range append(kinds(), k8s.ObjectList(&corev1.ConfigMapList{})) {
			if err := s.admin.List(ctx, list); err != nil {
				return "", err
			}
			if err := meta.EachListItem(list, func(item runtime.Object) error { return s.sweepAway(ctx, item.(client.Object)) }); err != nil {
				return "", err
			}
		}
		return s.left(ctx)
	})
	if err != nil {
		s.t.Errorf("the attack leaves something in %s: %v", s.namespace, err)
	}
}

func (s *story) sweepAway(ctx context.Context, object client.Object) error {
	admin := s.admin.GetControllerRuntimeClient()
	err := admin.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.GracePeriodSeconds(0))
	if err == nil && len(object.GetFinalizers()) > 0 {
		err = admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	if apierrors.IsConflict(err) {
		return nil // it is read again
	}
	return client.IgnoreNotFound(err)
}

// since is how long ago something was, which may not have been yet.
func since(t *metav1.Time) time.Duration {
	if t == nil {
		return 0
	}
	return time.Since(t.Time)
}
