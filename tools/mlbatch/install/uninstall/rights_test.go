// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

func TestRightsThatAreMissingAreNamedOnce(t *testing.T) {
	deployment := helmrelease.Object{Unstructured: fakecluster.KueueDeployment(helmrelease.DefaultNamespace)}
	crd := helmrelease.Object{Unstructured: fakecluster.CRDs("kueue.x-k8s.io/Cohort")[0]}
	crd.SetAnnotations(map[string]string{"helm.sh/resource-policy": "keep"})
	clusterQueue := helmrelease.Object{Unstructured: fakecluster.ClusterQueue()}
	fakecluster.Denied(t, goes(t, release.StatusDeployed, nil, deployment, crd, clusterQueue).rights, map[string][]string{
		"an administrator":                  nil,
		"who may do all that is needed":     nil,
		"who may only look":                 {"update secrets", "delete secrets", "update customresourcedefinitions", "delete deployments"},
		"whose rights are in one namespace": {"get customresourcedefinitions", "list customresourcedefinitions", "update customresourcedefinitions"},
		"who may not update definitions":    {"update customresourcedefinitions"},
		"who may not update queues":         nil,
	})
}

func TestWhoMayNotUninstallIsToldBeforeAnythingGoes(t *testing.T) {
	there := fakecluster.KueueDeployment(helmrelease.DefaultNamespace)
	there.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": helmrelease.DefaultNamespace})
	m := goes(t, release.StatusDeployed, nil, helmrelease.Object{Unstructured: there})
	api := fakecluster.API(fakecluster.User(func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" && a.Verb != "delete" }), there.DeepCopy())
	err := Uninstaller{}.check(t.Context(), api, []*removal{m})
	const want = "you may not delete secrets, delete deployments here: use the credentials of a cluster administrator (--kubeconfig, --context)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if got := m.records(t); !cmp.Equal(got, []string{"deployed"}) {
		t.Errorf("Helm remembers %q", got)
	}
}

func TestAReleaseThatSomebodyInstallsStays(t *testing.T) {
	for resume, want := range map[bool]string{
		false: "the release mlbatch is pending-install since 2000-01-01T00:00:00Z: wait for the command that works on it to finish, or, if it was killed, run this one with --resume-interrupted",
		true:  "<nil>",
	} {
		m := goes(t, release.StatusPendingInstall, nil)
		m.Last.Info.LastDeployed = helmtime.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		err := Uninstaller{ResumeInterrupted: resume}.check(t.Context(), fakecluster.API(fakecluster.User(fakecluster.Everything)), []*removal{m})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
