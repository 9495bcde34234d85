// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/patience"
)

const (
	remaining = `
  - {name: e2e-remaining, users: [rose], quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: 8}}}`
	departing = `
  - {name: e2e-departing, users: [dan], quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: 8}}}`
)

// A team is removed from the file while it works: first by mistake, then for good, as
// docs/teams.md describes. Finally another team uses its name.
func TestATeamIsRemovedWhileItWorks(t *testing.T) {
	testenv.Test(t, features.New("departure").Assess("its work stays until somebody removes it", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		requires(t, needs.SimulatedNodes, needs.Machine)
		file := keep(t, cfg, "mlbatch-e2e-departures", "default")
		both, one := file.file(onSimulatedNodes+remaining+departing), file.file(onSimulatedNodes+remaining)
		file.apply(ctx, both)
		others, s := tell(t, cfg, "e2e-remaining", "rose", needs.SimulatedNodes), tell(t, cfg, "e2e-departing", "dan", needs.SimulatedNodes)
		s.untilMember(ctx, true, "dan")
		works, waits := wrapped("works", gpuJob("works", "8"), nil), wrapped("waits", gpuJob("waits", "8"), nil)
		works.Spec.Components = append(works.Spec.Components, wrapped("", secret("key"), nil).Spec.Components...)
		s.runs(ctx, works)
		pod := s.onlyPod(ctx, "works")
		s.waitsBecause(ctx, waits, "insufficient unused quota")
		bystander := others.standing(ctx)

		file.apply(ctx, one)
		s.mustRunOn(ctx, works, pod)
		s.mustHave(ctx, true, s.kept()...)
		s.mustHave(ctx, false, s.lost()...)
		s.untilMember(ctx, false, "dan")
		if err := s.user.Delete(ctx, works.DeepCopy()); !apierrors.IsForbidden(err) {
			t.Errorf("a former member can still delete work (%v)", err)
		}

		file.apply(ctx, both)
		s.mustHave(ctx, true, s.lost()...)
		s.untilMember(ctx, true, "dan")
		s.mustRunOn(ctx, works, pod)
		s.neverEvicted(ctx, works)

		file.apply(ctx, one)
		s.change(ctx, pod, succeeds)
		s.untilPhase(ctx, works, workload.AppWrapperSucceeded)
		s.untilPhase(ctx, waits, workload.AppWrapperRunning)
		s.removeForGood(ctx)
		s.until(ctx, "nothing is left", s.left)
		s.mustHave(ctx, false, append(s.kept(), s.lost()...)...)
		others.mustStandAs(ctx, bystander, "removing a team")

		file.apply(ctx, both)
		s.worksAtOnce(ctx, "dan")
		return ctx
	}).Feature())
}

// kept returns the objects that stay when a team is removed from the file.
func (s *story) kept() []client.Object {
	inside := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: s.namespace} }
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.queue()}},
		&kueue.LocalQueue{ObjectMeta: inside("default-queue")},
		&rbacv1.Role{ObjectMeta: inside("mlbatch-wrapped-secrets")},
		&rbacv1.RoleBinding{ObjectMeta: inside("mlbatch-wrapped-secrets")},
		&corev1.Secret{ObjectMeta: inside("key")},
	}
}

// lost returns the objects that are deleted at once.
func (s *story) lost() []client.Object {
	return []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mlbatch-edit", Namespace: s.namespace}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mlbatch-view-queues-" + s.namespace}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mlbatch-team", Namespace: s.namespace}},
	}
}

// mustHave fails unless all of these objects exist and none is being deleted or, if all is
// false, every one is gone or being deleted.
func (s *story) mustHave(ctx context.Context, all bool, objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		err := s.admin.Get(ctx, object.GetName(), object.GetNamespace(), object)
		if client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
		if there := err == nil && object.GetDeletionTimestamp() == nil; there != all {
			s.t.Errorf("%T %s exists: %t, want %t", object, object.GetName(), there, all)
		}
	}
}

// removeForGood runs the commands of docs/teams.md.
func (s *story) removeForGood(ctx context.Context) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Checkout, "docs", "teams.md"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "To remove a team for good")
	_, after, _ = strings.Cut(after, "```sh\n")
	commands, _, found := strings.Cut(after, "```")
	if !found {
		s.t.Fatal("docs/teams.md does not say how to remove a team for good")
	}
	ctx, cancel := patience.Context(ctx)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-exc", strings.ReplaceAll(commands, "TEAM", s.namespace))
	shell.Env = append(os.Environ(), "KUBECONFIG="+site.Cluster.KubeconfigPath(), "PATH="+filepath.Join(site.Cluster.Dir(), "bin")+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		s.t.Fatalf("the commands of docs/teams.md: %v\n%s", err, out)
	}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": "a key"},
	}
}
