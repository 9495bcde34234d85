// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package installer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// leadersAreKilled checks that the production profile survives the loss of a node: all leaders are killed at
// once, no node has room for new pods, and the other replicas take over.
func leadersAreKilled(t *testing.T) {
	succeeds(t, mlbatch("upgrade", "--charts="+charts(), "--profile=localcluster", "--profile=production"))
	wantAllReady(t)
	before, standbys := map[string]string{}, map[string]bool{}
	await(t, "each part has a leader that lives", func() error {
		before, standbys = leaders(t), map[string]bool{}
		for _, pod := range names(t, &corev1.PodList{}) {
			standbys[pod] = true
		}
		for lease, leader := range before {
			if !standbys[leader] {
				return fmt.Errorf("the leader of %s was %s", lease, leader)
			}
		}
		if got := len(before); got != 5 { // Kueue, the scheduler, the training operator, KubeRay, our controller
			return fmt.Errorf("there are %d: %v", got, before)
		}
		return nil
	})
	setRoom(t, false)
	for _, leader := range before {
		delete(standbys, leader)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: helmrelease.DefaultNamespace, Name: leader}}
		if err := admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the others lead", func() error {
		for lease, leader := range leaders(t) {
			if !standbys[leader] {
				return fmt.Errorf("the leader of %s is %s", lease, leader)
			}
		}
		return nil
	})
	if diff := cmp.Diff(len(before), len(leaders(t))); diff != "" {
		t.Errorf("leaders: %s", diff)
	}
	setRoom(t, true)
	wantAllReadySoon(t)
}

// setRoom uncordons or cordons the node of the platform.
func setRoom(t *testing.T, room bool) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := admin.List(t.Context(), nodes, client.MatchingLabels{"localcluster.mlbatch.dev/real": "true"}); err != nil || len(nodes.Items) != 1 {
		t.Fatalf("there are %d real nodes (%v)", len(nodes.Items), err)
	}
	node := &nodes.Items[0]
	before := node.DeepCopy()
	node.Spec.Unschedulable = !room
	if err := admin.Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// leaders returns the pod that leads, for each Lease of the platform.
func leaders(t *testing.T) map[string]string {
	t.Helper()
	leases := &coordinationv1.LeaseList{}
	if err := admin.List(t.Context(), leases, client.InNamespace(helmrelease.DefaultNamespace)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, lease := range leases.Items {
		if pod, _, led := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_"); led {
			all[lease.Name] = pod
		}
	}
	return all
}

// wantAllReadySoon waits until the killed pods are replaced.
func wantAllReadySoon(t *testing.T) {
	t.Helper()
	await(t, "all parts are ready", func() error {
		_, progress, err := finish(mlbatch("components"))
		if err != nil {
			return fmt.Errorf("%w: %s", err, progress)
		}
		return nil
	})
}
