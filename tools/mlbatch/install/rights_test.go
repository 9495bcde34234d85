// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

func TestRightsThatAreMissingAreNamedOnce(t *testing.T) {
	deployment := helmrelease.Object{Unstructured: fakecluster.KueueDeployment(helmrelease.DefaultNamespace)}
	crd := helmrelease.Object{Unstructured: fakecluster.CRDs("kueue.x-k8s.io/Cohort")[0]}
	clusterQueue := helmrelease.Object{Unstructured: fakecluster.ClusterQueue()}
	unknown := helmrelease.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}}}
	two := []*delivery{
		{Release: helmrelease.Release{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}, objects: []helmrelease.Object{deployment, crd}},
		{Release: helmrelease.Release{Name: "teams", Namespace: helmrelease.DefaultNamespace}, objects: []helmrelease.Object{clusterQueue, unknown}},
	}
	fakecluster.Denied(t, func(api access.API) access.Rights { return rightsToInstall(api, two) }, map[string][]string{
		"an administrator":              nil,
		"who may do all that is needed": nil,
		"who may only look": {
			"create namespaces", "patch namespaces", "create secrets", "patch secrets", "delete secrets", "update secrets",
			"update customresourcedefinitions", "create deployments", "patch deployments", "delete deployments",
			"create customresourcedefinitions", "patch customresourcedefinitions", "delete customresourcedefinitions",
			"create clusterqueues", "patch clusterqueues", "delete clusterqueues", "update clusterqueues",
		},
		"whose rights are in one namespace": {
			"list deployments", "get namespaces", "create namespaces", "patch namespaces",
			"get customresourcedefinitions", "list customresourcedefinitions", "update customresourcedefinitions",
			"create customresourcedefinitions", "patch customresourcedefinitions", "delete customresourcedefinitions",
			"get clusterqueues", "create clusterqueues", "patch clusterqueues", "delete clusterqueues", "update clusterqueues",
		},
		"who may not update definitions": {"update customresourcedefinitions"},
		"who may not update queues":      {"update clusterqueues"},
	})
}
