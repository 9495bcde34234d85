// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// podsByNode indexes pods that may have to leave their node by its name.
const podsByNode = "node"

// rulesOf are the rules by which nodes have to be left. If there are none, nodes are neither
// watched nor cached.
func rulesOf(c config.Autopilot) nodehealth.Rules {
	rules := nodehealth.Rules(c.ResourceTaints)
	if !c.MonitorNodes || len(rules.PossibleMigrationCauses()) == 0 {
		return nil
	}
	return rules
}

// markMigrations marks the pods that have to leave their node.
func (r *Reconciler) markMigrations(ctx context.Context, o *observation) error {
	if len(r.rules) == 0 {
		return nil
	}
	unhealthy := map[string][]corev1.ResourceName{}
	for i := range o.pods {
		pod := &o.pods[i]
		node := pod.Spec.NodeName
		if node == "" {
			continue
		}
		resources, known := unhealthy[node]
		if !known {
			found := &corev1.Node{}
			if err := r.cached.Get(ctx, client.ObjectKey{Name: node}, found); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot get node %s: %w", node, err)
			}
			resources = r.rules.MigrationCauses(found)
			unhealthy[node] = resources
		}
		if slices.ContainsFunc(resources, func(name corev1.ResourceName) bool { return podtemplate.AsksFor(&pod.Spec, name) }) {
			o.snapshot.Pods[i].MigrateFrom = node
		}
	}
	return nil
}

// nodeOfPod is the node of a pod. The cache drops it for pods that never have to leave.
func nodeOfPod(object client.Object) []string {
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// boundPods is slimPod and what counts of a pod's resources: its devices, and those that may
// become unhealthy, for which it also keeps its node. Thousands of pods share one copy.
func boundPods(in *interner, rules nodehealth.Rules) toolscache.TransformFunc {
	return func(object any) (any, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return object, nil
		}
		slim := in.slimPod(pod)
		used := requestedDevices(&pod.Spec)
		for _, name := range rules.PossibleMigrationCauses() {
			if podtemplate.AsksFor(&pod.Spec, name) {
				slim.Spec.NodeName = pod.Spec.NodeName
				used[name] = max(used[name], 1)
			}
		}
		if len(used) > 0 {
			slim.Spec.Resources = in.share(used)
		}
		return slim, nil
	}
}

// slimNode leaves what the rules are about.
func slimNode(rules nodehealth.Rules) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return rules.Slim(node), nil
		}
		return object, nil
	}
}

// nodeChanged passes a node that has to be left, or no longer has to. All else, such as
// heartbeats, is ignored; if a node is deleted, so are its pods.
func nodeChanged(rules nodehealth.Rules) predicate.Predicate {
	unhealthy := func(object client.Object) []corev1.ResourceName {
		if node, ok := object.(*corev1.Node); ok {
			return rules.MigrationCauses(node)
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(unhealthy(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !slices.Equal(unhealthy(e.ObjectOld), unhealthy(e.ObjectNew))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// wakeAppWrappersOnNode wakes those with pods there that may have to leave.
func wakeAppWrappersOnNode(cached client.Reader) handler.MapFunc {
	return func(ctx context.Context, node client.Object) []reconcile.Request {
		pods := &corev1.PodList{}
		if err := cached.List(ctx, pods, client.MatchingFields{podsByNode: node.GetName()}); err != nil {
			return nil // a cache that has stopped, and so has the controller
		}
		var requests []reconcile.Request
		for i := range pods.Items {
			requests = append(requests, wakeAppWrapperOfPod(ctx, &pods.Items[i])...)
		}
		return requests
	}
}
