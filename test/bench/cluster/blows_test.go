// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

// blow is a sort of fault.
type blow struct {
	name string
	// seenBy whom it can be noticed.
	seenBy []string
	// returns: pods may return to the nodes.
	returns bool
	// strike lets a node fail, and heal makes it good again.
	strike, heal func(ctx context.Context, f *fleet, node string) error
	// each is how much longer it may take for each node that fails at the same moment.
	each time.Duration
}

func (b blow) limit(nodes int) time.Duration { return 10*time.Minute + time.Duration(nodes)*b.each }

func (b blow) seen(by restarter) bool { return slices.Contains(b.seenBy, by.by) }

var everybody = []string{ours, theirs, kueues}

var blows = []blow{
	{name: "label", seenBy: []string{ours}, strike: evict, heal: unlabel},
	{name: "taint", seenBy: everybody, strike: taint, heal: untaint},
	{name: "crash", seenBy: everybody, returns: true, strike: crash, heal: nothing},
	// The node controller taints one node in ten seconds.
	{name: "lost", seenBy: everybody, strike: lose, heal: find, each: 12 * time.Second},
}

func nothing(context.Context, *fleet, string) error { return nil }

const gpuHealth = "autopilot.ibm.com/gpuhealth"

// evict labels a node as Autopilot does.
func evict(ctx context.Context, f *fleet, node string) error {
	f.hit(node)
	return f.patchNode(ctx, node, fmt.Sprintf(`{"metadata": {"labels": {%q: "EVICT"}}}`, gpuHealth))
}

func unlabel(ctx context.Context, f *fleet, node string) error {
	return f.patchNode(ctx, node, fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, gpuHealth))
}

// taint drives pods from a node, as programs do that drain a broken one.
func taint(ctx context.Context, f *fleet, node string) error {
	f.hit(node)
	return f.patchNode(ctx, node, fmt.Sprintf(`{"spec": {"taints": [{"key": "bench.example.com/broken", "effect": %q}]}}`, corev1.TaintEffectNoExecute))
}

func untaint(ctx context.Context, f *fleet, node string) error {
	return f.patchNode(ctx, node, `{"spec": {"taints": null}}`)
}

// failed is the status of a pod whose program has ended with an error now.
func failed() []byte {
	return fmt.Appendf(nil, `{"status": {"phase": "Failed", "containerStatuses": [{"name": "main", "image": "registry.example/work:1", "imageID": "", `+
		`"ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1, "finishedAt": %q}}}]}}`, time.Now().UTC().Format(time.RFC3339))
}

// crash lets all programs on a node fail.
func crash(ctx context.Context, f *fleet, node string) error {
	for _, r := range f.restarters {
		pods := &corev1.PodList{}
		if err := f.admin.List(ctx, pods, client.InNamespace(r.namespace), client.MatchingFields{"spec.nodeName": node}); err != nil {
			return fmt.Errorf("cannot list the pods of %s on %s: %w", r.by, node, err)
		}
		f.hit(node)
		for i := range pods.Items {
			patch := client.RawPatch(types.MergePatchType, failed())
			if err := f.admin.Status().Patch(ctx, &pods.Items[i], patch); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot let pod %s fail: %w", pods.Items[i].Name, err)
			}
		}
	}
	return nil
}

// lose ends the simulation of a node whose kubelet has reported last that it is not ready.
func lose(ctx context.Context, f *fleet, node string) error {
	if err := f.patchNode(ctx, node, `{"metadata": {"annotations": {"kwok.x-k8s.io/node": null}}}`); err != nil {
		return err
	}
	f.hit(node)
	return f.report(ctx, node, corev1.ConditionFalse)
}

// find makes a lost node a good one, and waits until everybody knows.
func find(ctx context.Context, f *fleet, node string) error {
	if err := f.patchNode(ctx, node, `{"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}}`); err != nil {
		return err
	}
	if err := f.report(ctx, node, corev1.ConditionTrue); err != nil {
		return err
	}
	return sandbox.Within(ctx, 10*time.Minute, func() error {
		found := &corev1.Node{}
		if err := f.admin.Get(ctx, client.ObjectKey{Name: node}, found); err != nil {
			return err
		}
		if len(found.Spec.Taints) > 0 {
			return fmt.Errorf("node %s has the taints %v", node, found.Spec.Taints)
		}
		return nil
	})
}

func (f *fleet) patchNode(ctx context.Context, node, patch string) error {
	err := f.admin.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, []byte(patch)))
	if err != nil {
		return fmt.Errorf("cannot change node %s: %w", node, err)
	}
	return nil
}

// report reports whether a node is ready, as its kubelet does.
func (f *fleet) report(ctx context.Context, node string, ready corev1.ConditionStatus) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"status": {"conditions": [{"type": "Ready", "status": %q, "reason": "Bench", "lastHeartbeatTime": %q, "lastTransitionTime": %q}]}}`, ready, now, now)
	err := f.admin.Status().Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.StrategicMergePatchType, patch))
	if err != nil {
		return fmt.Errorf("cannot report of node %s: %w", node, err)
	}
	return nil
}
