// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// clusterQueue returns a ClusterQueue, which the release retains.
func clusterQueue() helmrelease.Object {
	return helmrelease.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue",
		"metadata": map[string]any{"name": "blue", "annotations": map[string]any{"helm.sh/resource-policy": "keep"}},
	}}}
}

// deployment returns Kueue's Deployment.
func deployment() helmrelease.Object {
	return helmrelease.Object{Unstructured: fakecluster.KueueDeployment(helmrelease.DefaultNamespace)}
}

func TestRightsThatAreMissingAreNamedOnce(t *testing.T) {
	crd := helmrelease.Object{Unstructured: fakecluster.CRDs("kueue.x-k8s.io/Cohort")[0]}
	crd.SetAnnotations(map[string]string{"helm.sh/resource-policy": "keep"})
	removed := goes(t, release.StatusDeployed, nil, deployment(), crd, clusterQueue())
	for name, c := range map[string]struct {
		may  func(authorizationv1.ResourceAttributes) bool
		want []string
	}{
		"an administrator":              {fakecluster.Everything, nil},
		"who may do all that is needed": {func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" }, nil},
		"who may only look": {
			func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "get" || a.Verb == "list" },
			[]string{"update secrets", "delete secrets", "update customresourcedefinitions", "delete deployments"},
		},
		"whose rights are in one namespace": {
			func(a authorizationv1.ResourceAttributes) bool {
				return a.Verb != "*" && a.Namespace == helmrelease.DefaultNamespace
			},
			[]string{"get customresourcedefinitions", "list customresourcedefinitions", "update customresourcedefinitions"},
		},
		"who may not update definitions": {func(a authorizationv1.ResourceAttributes) bool {
			return a.Verb != "*" && (a.Verb != "update" || a.Resource != "customresourcedefinitions")
		}, []string{"update customresourcedefinitions"}},
		"who may not update queues": {func(a authorizationv1.ResourceAttributes) bool {
			return a.Verb != "*" && (a.Verb != "update" || a.Resource != "clusterqueues")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			api := fakecluster.API(fakecluster.User(c.may))
			got, err := removed.rights(api).Denied(t.Context(), api)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestWhoMayNotUninstallIsToldBeforeAnythingGoes(t *testing.T) {
	there := deployment()
	there.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": helmrelease.DefaultNamespace})
	m := goes(t, release.StatusDeployed, nil, there)
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
	for ends, want := range map[time.Duration]string{
		20 * time.Second: helmrelease.Busy("mlbatch").Error(),
		time.Hour:        "<nil>", // its command was killed
	} {
		synctest.Test(t, func(t *testing.T) {
			m := goes(t, release.StatusPendingInstall, nil)
			m.Last.Info.LastDeployed = helmtime.Now()
			defer time.AfterFunc(ends, func() {
				ended := *m.Last
				ended.Info = &release.Info{Status: release.StatusDeployed}
				if err := m.Helm.Releases.Update(&ended); err != nil {
					t.Error(err)
				}
			}).Stop()
			err := Uninstaller{}.check(t.Context(), fakecluster.API(fakecluster.User(fakecluster.Everything)), []*removal{m})
			if got := fmt.Sprint(err); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}
