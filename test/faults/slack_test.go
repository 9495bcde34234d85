// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// slack is the queue that testdata/values.yaml names.
const slack = "faults-slack"

// slackQueue has 24 GPUs: those of three nodes.
func slackQueue() *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "ClusterQueue"},
		ObjectMeta: metav1.ObjectMeta{Name: slack},
	}
	q.Spec.CohortName = "default-cohort"
	quota := func(name corev1.ResourceName, nominal string) kueue.ResourceQuota {
		return kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse(nominal)}
	}
	q.Spec.ResourceGroups = []kueue.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{corev1.ResourceMemory, gpu},
		Flavors:          []kueue.FlavorQuotas{{Name: "default-flavor", Resources: []kueue.ResourceQuota{quota(corev1.ResourceMemory, "1Ti"), quota(gpu, "24")}}},
	}}
	return q
}

// lends waits until the slack queue lends so many GPUs, and returns the queue; "" is no limit.
func lends(t *testing.T, want string) *kueue.ClusterQueue {
	t.Helper()
	q := &kueue.ClusterQueue{}
	until(t, time.Minute, "the slack queue lends "+want, func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKey{Name: slack}, q); err != nil {
			return err
		}
		got := ""
		if limit := q.Spec.ResourceGroups[0].Flavors[0].Resources[1].LendingLimit; limit != nil {
			got = limit.String()
		}
		if got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	return q
}

func cordon(t *testing.T, unschedulable bool, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		if err := update(t.Context(), fmt.Sprintf("gpu-%d", i), func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASlackQueueFollowsTheNodes(t *testing.T) {
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), slackQueue()); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		heal(t, "gpu-1")
		heal(t, "gpu-2")
	})
	apply := func(options ...client.PatchOption) error {
		return admin.Patch(t.Context(), slackQueue(), client.Apply, append(options, client.FieldOwner("gitops"))...) //nolint:staticcheck // as kubectl does
	}
	if err := apply(); err != nil {
		t.Fatal(err)
	}
	before := lends(t, "")
	cordon(t, true, 1, 2)
	both := lends(t, "8")
	t.Logf("two nodes: %d writes", both.Generation-before.Generation)
	cordon(t, false, 1, 2)
	if q := lends(t, ""); len(q.Annotations) > 0 {
		t.Errorf("the annotations are %q", q.Annotations)
	}

	t.Log("a device is missing, and then the node does not show it any more")
	changeStatus(t, "gpu-1", func(s *corev1.NodeStatus) { s.Allocatable[gpu] = resource.MustParse("7") })
	lends(t, "23")
	changeStatus(t, "gpu-1", func(s *corev1.NodeStatus) { s.Capacity[gpu] = resource.MustParse("7") })
	cordon(t, true, 1)
	lends(t, "16")

	t.Log("the queue is applied again meanwhile")
	if err := apply(); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict, got %v", err)
	}
	if err := apply(client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	lends(t, "16")

	t.Log("the controller is away while nodes change")
	stop(t)
	cordon(t, true, 2)
	cordon(t, false, 1)
	scale(t, 1)
	lends(t, "15") // 8 of one, and the device of the other
	cordon(t, false, 2)
	lends(t, "23")
	changeStatus(t, "gpu-1", func(s *corev1.NodeStatus) {
		s.Capacity[gpu], s.Allocatable[gpu] = resource.MustParse("8"), resource.MustParse("8")
	})
	lends(t, "")
	logDelays(t)
}

// The controller may make and remove the queue that its configuration names, as the chart teams hands it over.
func TestASlackQueueOfTheTeamsFileIsMade(t *testing.T) {
	handed := func(gpus int) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: "mlbatch-slack-queues"}, Data: map[string]string{
			slack: fmt.Sprintf("{cohortName: default-cohort, resourceGroups: [{coveredResources: [memory, %[1]s], flavors: [{name: default-flavor, "+
				"resources: [{name: memory, nominalQuota: 1Ti}, {name: %[1]s, nominalQuota: %[2]d}]}]}]}", gpu, gpus),
		}}
	}
	remove := func(ctx context.Context) error { return client.IgnoreNotFound(admin.Delete(ctx, handed(0))) }
	t.Cleanup(func() {
		if err := remove(context.Background()); err != nil {
			t.Error(err)
		}
		heal(t, "gpu-1")
		heal(t, "gpu-2")
	})
	if err := admin.Create(t.Context(), handed(24)); err != nil {
		t.Fatal(err)
	}
	lends(t, "")
	cordon(t, true, 1)
	lends(t, "16")
	t.Log("the file has more")
	if err := admin.Update(t.Context(), handed(32)); err != nil {
		t.Fatal(err)
	}
	lends(t, "24")
	t.Log("an administrator sets a limit")
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // Kueue writes its status meanwhile
		q := lends(t, "24")
		q.Spec.ResourceGroups[0].Flavors[0].Resources[1].LendingLimit = ptr.To(resource.MustParse("20"))
		return admin.Update(t.Context(), q)
	}); err != nil {
		t.Fatal(err)
	}
	lends(t, "20")
	cordon(t, true, 2)
	lends(t, "16")
	cordon(t, false, 1, 2)
	lends(t, "20")
	t.Log("the file has it no more")
	if err := admin.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: handed(0).ObjectMeta}); err != nil { // without the file, it would stay for a while
		t.Fatal(err)
	}
	until(t, time.Minute, "the queue is removed", func(ctx context.Context) error {
		err := admin.Get(ctx, client.ObjectKey{Name: slack}, &kueue.ClusterQueue{})
		if err == nil {
			err = errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}

// logDelays measures from a change of a node to that of the limit.
func logDelays(t *testing.T) {
	t.Helper()
	watch, err := admin.Watch(t.Context(), &kueue.ClusterQueueList{}, client.MatchingFields{"metadata.name": slack})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	var delays []time.Duration
	for i := range 40 {
		begin, limited := time.Now(), i%2 == 0
		cordon(t, limited, 2)
		for event := range watch.ResultChan() {
			q, ok := event.Object.(*kueue.ClusterQueue)
			if !ok {
				t.Fatalf("the watch reports %+v", event.Object)
			}
			if limit := q.Spec.ResourceGroups[0].Flavors[0].Resources[1].LendingLimit; ptr.Deref(limit, resource.MustParse("24")).Equal(resource.MustParse("16")) == limited {
				break
			}
		}
		delays = append(delays, time.Since(begin))
	}
	slices.Sort(delays)
	t.Logf("of 40 changes: p50 %s, p99 %s", delays[19].Round(time.Millisecond), delays[39].Round(time.Millisecond))
}
