// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// podsByNode indexes pods that may have to leave their node by its name.
const podsByNode = "node"

// blameNodes notes of each pod that its node rejected it.
func (r *Reconciler) blameNodes(o *observation) {
	for i := range o.pods {
		if cause, rejected := nodehealth.Rejection(&o.pods[i]); rejected && r.rules.Monitored {
			o.snapshot.Pods[i].MigrateFrom, o.snapshot.Pods[i].MigrateBecause = o.pods[i].Spec.NodeName, []nodehealth.Cause{cause}
		}
	}
}

// markMigrations marks the pods that have to leave their node.
func (r *Reconciler) markMigrations(ctx context.Context, o *observation) error {
	r.blameNodes(o)
	if len(r.rules.Resources()) == 0 {
		return nil
	}
	findings, inUse := map[string][]nodehealth.Finding{}, o.devicesInUse()
	for i := range o.pods {
		node := o.pods[i].Spec.NodeName
		if node == "" || o.pods[i].Status.Phase == corev1.PodSucceeded {
			continue
		}
		if _, known := findings[node]; !known {
			found, err := r.findings(ctx, node)
			if err != nil {
				return err
			}
			findings[node] = found
		}
		o.mark(i, findings[node], inUse, r.now())
	}
	return nil
}

// findings are what is wrong with a node.
func (r *Reconciler) findings(ctx context.Context, name string) ([]nodehealth.Finding, error) {
	node := &corev1.Node{}
	err := r.cached.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nodehealth.Gone(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get node %s: %w", name, err)
	}
	return r.rules.Findings(node), nil
}

// mark notes that pod i must leave its node, or that the node is to blame for its end.
func (o *observation) mark(i int, findings []nodehealth.Finding, inUse map[deviceOfNode]int64, now time.Time) {
	for _, f := range findings {
		needed := inUse[deviceOfNode{o.pods[i].Spec.NodeName, string(f.Resource)}]
		if f.Source == nodehealth.DevicesMissing && o.hasEnded(i) {
			needed = o.inUseAtTheEnd(i, f.Resource)
		}
		if f.Concerns(&o.pods[i].Spec, needed) {
			o.markBecause(i, f, now)
		}
	}
}

func (o *observation) markBecause(i int, f nodehealth.Finding, now time.Time) {
	pod := &o.snapshot.Pods[i]
	due, known := f.Due(&o.pods[i].Spec)
	lost := o.hasEnded(i) || pod.Terminating
	if lost && !f.Explains(endOf(&o.pods[i]), now) || !lost && !known {
		return
	}
	if pod.MigrateFrom == "" || due.Before(pod.MigrateAt) {
		pod.MigrateAt = due
	}
	pod.MigrateFrom, pod.MigrateBecause = o.pods[i].Spec.NodeName, append(pod.MigrateBecause, f.Cause)
}

type deviceOfNode struct{ node, device string }

// devicesInUse are how many of each device the pods keep that run, or will.
func (o *observation) devicesInUse() map[deviceOfNode]int64 {
	inUse := map[deviceOfNode]int64{}
	for i := range o.pods {
		pod := &o.snapshot.Pods[i]
		if pod.Terminating || o.hasEnded(i) {
			continue
		}
		for device, n := range pod.Devices {
			inUse[deviceOfNode{o.pods[i].Spec.NodeName, device}] += n
		}
	}
	return inUse
}

// inUseAtTheEnd is how many of a device the pods on the node of pod i used when it ended.
func (o *observation) inUseAtTheEnd(i int, device corev1.ResourceName) int64 {
	end, inUse := endOf(&o.pods[i]), o.snapshot.Pods[i].Devices[string(device)]
	for j := range o.pods {
		other := &o.snapshot.Pods[j]
		beside := j != i && o.pods[j].Spec.NodeName == o.pods[i].Spec.NodeName && !other.Started.IsZero() && !other.Started.After(end)
		if beside && (!o.hasEnded(j) || !endOf(&o.pods[j]).Before(end)) {
			inUse += other.Devices[string(device)]
		}
	}
	return inUse
}

func (o *observation) hasEnded(i int) bool {
	phase := o.snapshot.Pods[i].Phase
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// endOf is when the last container of a pod ended, or else when Kubernetes ended the pod; zero if
// it has not ended, or nobody knows when.
func endOf(pod *corev1.Pod) time.Time {
	var end time.Time
	if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
		return end
	}
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil && ended.FinishedAt.After(end) {
			end = ended.FinishedAt.Time
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && end.IsZero() {
			end = c.LastTransitionTime.Time
		}
	}
	return end
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
		slim.Spec.Tolerations = rules.SlimTolerations(pod.Spec.Tolerations)
		if requestsMonitored(&pod.Spec, rules, used) {
			slim.Spec.NodeName = intern(in, pod.Spec.NodeName)
		}
		if cause, rejected := nodehealth.Rejection(pod); rejected && rules.Monitored {
			slim.Spec.NodeName, slim.Status.Reason = intern(in, pod.Spec.NodeName), cause.Sign
		}
		if _, _, evicted := nodehealth.Eviction(pod); evicted && rules.Monitored {
			slim.Spec.NodeName = intern(in, pod.Spec.NodeName)
		}
		if len(used) > 0 {
			slim.Spec.Resources = in.share(used)
		}
		return slim, nil
	}
}

// requestsMonitored reports whether a pod requests what may become unhealthy, and adds that to what it uses.
func requestsMonitored(pod *corev1.PodSpec, rules nodehealth.Rules, used map[corev1.ResourceName]int64) (found bool) {
	for _, name := range rules.Resources() {
		switch {
		case name == nodehealth.AllPods:
			found = true
		case podtemplate.AsksFor(pod, name):
			found = true
			if !nodehealth.IsDevice(name) { // devices are counted already, each by its own name
				used[name] = 1
			}
		}
	}
	return found
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

// nodeChanged passes a node on which something else is wrong than before. All else, such as
// heartbeats, is ignored; if a node is deleted, so are its pods.
func nodeChanged(rules nodehealth.Rules) predicate.Predicate {
	unhealthy := func(object client.Object) []nodehealth.Finding {
		if node, ok := object.(*corev1.Node); ok {
			return rules.Findings(node)
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
