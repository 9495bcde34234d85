// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// user answers reviews of access.
func user(may func(authorizationv1.ResourceAttributes) bool) *fake.Clientset {
	typed := fake.NewClientset()
	typed.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = may(*review.Spec.ResourceAttributes)
		return true, review, nil
	})
	return typed
}

// everything is what an administrator may do.
func everything(a authorizationv1.ResourceAttributes) bool { return a.Verb == "*" }

// clusterQueue is one that the release leaves behind.
func clusterQueue() object {
	return object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue",
		"metadata": map[string]any{"name": "blue", "annotations": map[string]any{"helm.sh/resource-policy": "keep"}},
	}}}
}

func TestRightsThatAreMissingAreNamedOnce(t *testing.T) {
	unknown := object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}}}
	two := []*delivery{
		{Release: Release{Name: "mlbatch", Namespace: Namespace}, objects: append(wanted(), definitions("kueue.x-k8s.io/Cohort")...)},
		{Release: Release{Name: "teams", Namespace: Namespace}, objects: []object{clusterQueue(), unknown}},
	}
	removed := goes(t, release.StatusDeployed, nil, append(wanted(), append(definitions("kueue.x-k8s.io/Cohort"), clusterQueue())...)...)
	removed.objects[1].SetAnnotations(map[string]string{"helm.sh/resource-policy": "keep"})
	for name, c := range map[string]struct {
		may                    func(authorizationv1.ResourceAttributes) bool
		toInstall, toUninstall []string
	}{
		"an administrator":              {everything, nil, nil},
		"who may do all that is needed": {func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" }, nil, nil},
		"who may only look": {func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "get" || a.Verb == "list" }, []string{
			"create namespaces", "patch namespaces", "create secrets", "patch secrets", "delete secrets", "update secrets",
			"update customresourcedefinitions", "create deployments", "patch deployments", "delete deployments",
			"create customresourcedefinitions", "patch customresourcedefinitions", "delete customresourcedefinitions",
			"create clusterqueues", "patch clusterqueues", "delete clusterqueues", "update clusterqueues",
		}, []string{"update secrets", "delete secrets", "update customresourcedefinitions", "delete deployments"}},
		"whose rights are in one namespace": {func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" && a.Namespace == Namespace }, []string{
			"list deployments", "get namespaces", "create namespaces", "patch namespaces",
			"get customresourcedefinitions", "list customresourcedefinitions", "update customresourcedefinitions",
			"create customresourcedefinitions", "patch customresourcedefinitions", "delete customresourcedefinitions",
			"get clusterqueues", "create clusterqueues", "patch clusterqueues", "delete clusterqueues", "update clusterqueues",
		}, []string{"get customresourcedefinitions", "list customresourcedefinitions", "update customresourcedefinitions"}},
		"who may not update definitions": {func(a authorizationv1.ResourceAttributes) bool {
			return a.Verb != "*" && (a.Verb != "update" || a.Resource != "customresourcedefinitions")
		}, []string{"update customresourcedefinitions"}, []string{"update customresourcedefinitions"}},
		"who may not update queues": {func(a authorizationv1.ResourceAttributes) bool {
			return a.Verb != "*" && (a.Verb != "update" || a.Resource != "clusterqueues")
		}, []string{"update clusterqueues"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			api := cluster(user(c.may))
			got, err := toInstall(api, two).denied(t.Context(), api)
			if diff := cmp.Diff(c.toInstall, got); err != nil || diff != "" {
				t.Error("to install:", err, diff)
			}
			got, err = removed.rights(api).denied(t.Context(), api)
			if diff := cmp.Diff(c.toUninstall, got); err != nil || diff != "" {
				t.Error("to uninstall:", err, diff)
			}
		})
	}
}

func TestWhoMayNotUninstallIsToldBeforeAnythingGoes(t *testing.T) {
	there := wanted()[0]
	there.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": Namespace})
	m := goes(t, release.StatusDeployed, nil, there)
	api := cluster(user(func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" && a.Verb != "delete" }), there.DeepCopy())
	err := Uninstaller{}.check(t.Context(), api, []*removal{m})
	const want = "you may not delete secrets, delete deployments here: that takes the rights of the cluster's administrator (--kubeconfig, --context)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if got := m.records(t); !cmp.Equal(got, []string{"deployed"}) {
		t.Errorf("Helm remembers %q", got)
	}
}
