// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// The operators, Kubernetes' own controllers and ours create what is in an AppWrapper. Nobody else creates pods, or
// what makes pods, in a team with appWrappersOnly: also with Kubernetes' role edit.
func TestATeamOfAppWrappersOnly(t *testing.T) {
	testenv.Test(t, features.New("wrapped").Assess("only what is wrapped runs", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-wrapped", "wendy", needs.SimulatedNodes, needs.PyTorchJobs, needs.Gangs)
		s.runs(ctx, wrapped("torch", trainingJob("torch", 2, "2"), nil))
		s.untilRunning(ctx, "torch", 2)
		s.runs(ctx, wrapped("job", gpuJobs("job", 1, "2"), nil))
		s.untilRunning(ctx, "job", 1)

		s.edits(ctx, "edward")
		editor := as(t, cfg, "edward")
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: gpuJobs("bare", 1, "2").Spec.Template.Spec}
		s.createsOnlyWrapped(ctx, s.user, trainingJob("bare", 1, "2"))
		s.createsOnlyWrapped(ctx, editor, gpuJobs("bare", 1, "2"))
		s.createsOnlyWrapped(ctx, editor, pod)
		return ctx
	}).Feature())
}

// edits gives somebody Kubernetes' role edit, once the API server knows it.
func (s *story) edits(ctx context.Context, user string) {
	s.t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: s.namespace},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if err := s.admin.Create(ctx, binding); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.admin.Delete(context.WithoutCancel(ctx), binding); err != nil {
			s.t.Error(err)
		}
	})
}

// createsOnlyWrapped: rights count a moment after they are given.
func (s *story) createsOnlyWrapped(ctx context.Context, user client.Client, object client.Object) {
	s.t.Helper()
	object.SetNamespace(s.namespace)
	kind := object.GetObjectKind().GroupVersionKind().Kind
	says := "this team creates AppWrappers and Runs only: put the " + kind + " into an AppWrapper"
	s.until(ctx, kind+" is refused", func(ctx context.Context) (string, error) {
		err := user.Create(ctx, object, client.DryRunAll)
		switch {
		case err == nil:
			return "", broken("a bare " + kind + " is accepted")
		case apierrors.IsInvalid(err) && strings.Contains(err.Error(), says), apierrors.IsForbidden(err) && strings.Contains(err.Error(), says):
			return "", nil
		}
		return err.Error(), nil
	})
}
