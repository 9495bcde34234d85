// SPDX-License-Identifier: Apache-2.0

// Package cordon cordons nodes that fail unrelated work, where an administrator lets it. Which
// these are decides package nodehealth. It uncordons none.
package cordon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// Settings are what the configuration file says.
type Settings struct {
	nodehealth.Cordoning
	// Remembered is for how long an AppWrapper blames a node.
	Remembered time.Duration
}

type reconciler struct {
	Settings
	cached, live client.Reader
	client       client.Client
	recorder     events.EventRecorder
	counts       *prometheus.CounterVec
	now          func() time.Time
	// spared are the nodes of which it has been said that they are not cordoned.
	spared []string
}

// lookAgain is when to decide again after a write: a node may have changed meanwhile, so that it
// was not written.
const lookAgain = time.Second

// Reconcile decides from the caches, and again from the API server before it writes: a node that
// somebody has just cordoned or uncordoned counts.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	_, d, err := r.decide(ctx, r.cached)
	if err != nil {
		return ctrl.Result{}, err
	}
	if d.Nothing() {
		r.tellSpared(d.Spared)
		return ctrl.Result{}, nil
	}
	nodes, d, err := r.decide(ctx, r.live)
	if err == nil {
		err = r.act(ctx, nodes, d)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// decide takes the nodes from where it is told, and blames from the cache.
func (r *reconciler) decide(ctx context.Context, from client.Reader) ([]corev1.Node, nodehealth.Cordons, error) {
	var work v1beta2.AppWrapperList
	if err := r.cached.List(ctx, &work, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nodehealth.Cordons{}, fmt.Errorf("cannot list the AppWrappers that avoid nodes: %w", err)
	}
	var nodes corev1.NodeList
	if err := from.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nodehealth.Cordons{}, fmt.Errorf("cannot list the nodes that might be cordoned: %w", err)
	}
	var blames []nodehealth.Blame
	for i := range work.Items {
		for _, n := range work.Items[i].Status.AvoidedNodes {
			blames = append(blames, nodehealth.Blame{
				By: client.ObjectKeyFromObject(&work.Items[i]), Node: n.Name, Cause: n.Cause, Since: r.since(n), Until: n.Until.Time,
			})
		}
	}
	return nodes.Items, r.Decide(nodes.Items, blames, r.now()), nil
}

// since is when a node failed an AppWrapper. Where an earlier version has written that, it is known only if the
// administrator has not changed for how long nodes are remembered.
func (r *reconciler) since(n v1beta2.AvoidedNode) time.Time {
	if n.Since != nil {
		return n.Since.Time
	}
	return n.Until.Add(-r.Remembered)
}

// act writes each node as it was read: if it has changed since, the next decision counts.
func (r *reconciler) act(ctx context.Context, nodes []corev1.Node, d nodehealth.Cordons) error {
	var failed error
	for _, name := range d.Ended {
		_, err := r.write(ctx, named(nodes, name), r.startAfresh)
		failed = errors.Join(failed, err)
	}
	for _, s := range d.Begin {
		why := because(s)
		written, err := r.write(ctx, named(nodes, s.Node), func(node *corev1.Node) {
			node.Spec.Unschedulable = true
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1beta2.CordonedAnnotation, r.now().UTC().Format(time.RFC3339)+" "+why)
		})
		failed = errors.Join(failed, err)
		if written {
			log.FromContext(ctx).Info("cordoned", "node", s.Node, "because", why)
			r.tell(s.Node, resultCordoned, "Cordoned: "+why+". Running pods stay. Repair the node, then uncordon it")
		}
	}
	return failed
}

// startAfresh: what an uncordoned node has done before does not count any more.
func (r *reconciler) startAfresh(node *corev1.Node) {
	delete(node.Annotations, v1beta2.CordonedAnnotation)
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1beta2.UncordonedAnnotation, r.now().UTC().Format(time.RFC3339))
}

func (r *reconciler) write(ctx context.Context, node *corev1.Node, change func(*corev1.Node)) (written bool, err error) {
	before := node.DeepCopy()
	change(node)
	err = r.client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot mark node %s as cordoned or uncordoned: %w", node.Name, err)
	}
	return true, nil
}

// tellSpared says once of each node that it would be cordoned.
func (r *reconciler) tellSpared(all []nodehealth.Suspect) {
	var names []string
	for _, s := range all {
		names = append(names, s.Node)
		if !slices.Contains(r.spared, s.Node) {
			r.tell(s.Node, resultSpared, fmt.Sprintf("Not cordoned, because as many nodes are as nodeHealth.cordon.nodes allows (%d): %s", r.Nodes, because(s)))
		}
	}
	r.spared = names
}

const actionCordoning = "Cordoning"

func (r *reconciler) tell(node, result, message string) {
	r.counts.WithLabelValues(result).Inc()
	about := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: node}}
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, reasons[result], actionCordoning, "%s", message)
}

var reasons = map[string]string{resultCordoned: "Cordoned", resultSpared: "NotCordoned"}

func because(s nodehealth.Suspect) string {
	return fmt.Sprintf("pods of %d AppWrappers of %d teams were rejected or did not start here lately, at last with %s", s.By, s.Teams, s.Cause)
}

func named(nodes []corev1.Node, name string) *corev1.Node {
	return &nodes[slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name })]
}
