// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

const queue = "everything"

// createQueue creates a ClusterQueue of one flavor that has quota for everything: CPUs and other resources.
func createQueue(t *testing.T, admin client.Client, flavor kueue.ResourceFlavorSpec, others ...corev1.ResourceName) {
	t.Helper()
	group := kueue.ResourceGroup{CoveredResources: append(others, corev1.ResourceCPU), Flavors: []kueue.FlavorQuotas{{Name: queue}}}
	for _, name := range group.CoveredResources {
		quota := kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse("1M")}
		group.Flavors[0].Resources = append(group.Flavors[0].Resources, quota)
	}
	sandbox.Create(t, admin, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: flavor})
	sandbox.Create(t, admin, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{group},
	}})
}

// createLocalQueue lets the work of a namespace through the queue.
func createLocalQueue(t *testing.T, admin client.Client, namespace string) {
	t.Helper()
	sandbox.Create(t, admin, &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queue}, Spec: kueue.LocalQueueSpec{ClusterQueue: queue},
	})
}

// withJobs lets Kueue manage Jobs, too. The platform leaves them out, because members cannot create
// any; here they are what AppWrappers are compared with.
func withJobs(t *testing.T, values map[string]any) map[string]any {
	t.Helper()
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(checkout, "charts", "mlbatch", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path, defaults := []string{"kueue", "managerConfig", "configuration", "integrations", "frameworks"}, map[string]any{}
	err = yaml.Unmarshal(text, &defaults)
	if err != nil {
		t.Fatal(err)
	}
	frameworks, found, err := unstructured.NestedStringSlice(defaults, path...)
	if err == nil && found {
		err = unstructured.SetNestedStringSlice(values, append(frameworks, "batch/job"), path...)
	}
	if err != nil || !found {
		t.Fatalf("the chart has no frameworks of Kueue: %v", err)
	}
	return values
}
