// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package turns_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

// nodes have room for the pods of all jobs: 110 each.
const nodes = 20

// settings are what an administrator chooses for preemption.
type settings struct {
	name               string
	withinClusterQueue kueue.PreemptionPolicy
	// values of charts/mlbatch; nil for the defaults.
	values map[string]any
	// watched is how long turns are watched after the last arrival, if they do not end before.
	watched time.Duration
	// ends: they must.
	ends bool
}

// cluster starts a simulated cluster with the platform, until the test ends.
func (s settings) cluster(t *testing.T) client.WithWatch {
	t.Helper()
	admin, _ := sandbox.Start(t, "turns", 26621, nodes, s.values)
	enlarge(t, admin)
	return admin
}

// enlarge makes the nodes so large that only quota decides who runs.
func enlarge(t *testing.T, admin client.Client) {
	t.Helper()
	list := &corev1.NodeList{}
	if err := admin.List(t.Context(), list, client.MatchingLabels{sandbox.Simulated: "true"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != nodes {
		t.Fatalf("there are %d simulated nodes, not %d", len(list.Items), nodes)
	}
	for i := range list.Items {
		before := list.Items[i].DeepCopy()
		for _, of := range []corev1.ResourceList{list.Items[i].Status.Capacity, list.Items[i].Status.Allocatable} {
			of[gpu], of[corev1.ResourceCPU] = resource.MustParse("10k"), resource.MustParse("10k")
		}
		if err := admin.Status().Patch(t.Context(), &list.Items[i], client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}
