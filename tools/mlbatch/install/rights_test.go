// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
	unknown := helmrelease.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}}}
	two := []*delivery{
		{Release: helmrelease.Release{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}, objects: []helmrelease.Object{deployment(), {Unstructured: fakecluster.CRDs("kueue.x-k8s.io/Cohort")[0]}}},
		{Release: helmrelease.Release{Name: "teams", Namespace: helmrelease.DefaultNamespace}, objects: []helmrelease.Object{clusterQueue(), unknown}},
	}
	for name, c := range map[string]struct {
		may  func(authorizationv1.ResourceAttributes) bool
		want []string
	}{
		"an administrator":              {fakecluster.Everything, nil},
		"who may do all that is needed": {func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" }, nil},
		"who may only look": {func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "get" || a.Verb == "list" }, []string{
			"create namespaces", "patch namespaces", "create secrets", "patch secrets", "delete secrets", "update secrets",
			"update customresourcedefinitions", "create deployments", "patch deployments", "delete deployments",
			"create customresourcedefinitions", "patch customresourcedefinitions", "delete customresourcedefinitions",
			"create clusterqueues", "patch clusterqueues", "delete clusterqueues", "update clusterqueues",
		}},
		"whose rights are in one namespace": {func(a authorizationv1.ResourceAttributes) bool {
			return a.Verb != "*" && a.Namespace == helmrelease.DefaultNamespace
		}, []string{
			"list deployments", "get namespaces", "create namespaces", "patch namespaces",
			"get customresourcedefinitions", "list customresourcedefinitions", "update customresourcedefinitions",
			"create customresourcedefinitions", "patch customresourcedefinitions", "delete customresourcedefinitions",
			"get clusterqueues", "create clusterqueues", "patch clusterqueues", "delete clusterqueues", "update clusterqueues",
		}},
		"who may not update definitions": {func(a authorizationv1.ResourceAttributes) bool {
			return a.Verb != "*" && (a.Verb != "update" || a.Resource != "customresourcedefinitions")
		}, []string{"update customresourcedefinitions"}},
		"who may not update queues": {func(a authorizationv1.ResourceAttributes) bool {
			return a.Verb != "*" && (a.Verb != "update" || a.Resource != "clusterqueues")
		}, []string{"update clusterqueues"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := fakecluster.API(fakecluster.User(c.may))
			got, err := rightsToInstall(api, two).Denied(t.Context(), api)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
