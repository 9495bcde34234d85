// SPDX-License-Identifier: Apache-2.0

// Package reassignment answers how Kueue is asked for other nodes, where it has assigned nodes to the pods of a
// Workload, and when it can be. It is pure.
//
// Kueue keeps an assignment as long as the Workload has quota. When it assigns nodes anew, it respects the node
// affinity of the pod sets, which cannot be changed while there is quota. So there are two steps:
//
//	with quota      Request: spec.active becomes false, and an annotation says which nodes to keep away from
//	                Kueue suspends the AppWrapper, and takes the quota back when no pod is left
//	without quota   Proceed: the pod sets get their affinity, and spec.active becomes true, in one write
//
// Names of nodes are forgotten in time, when the Workload waits for quota: nodes are repaired.
package reassignment

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// FieldOwner is who writes the affinity, in the managed fields of a Workload.
const FieldOwner = "mlbatch-reassignment"

// Request deactivates a Workload that has quota. It reports whether the Workload has changed.
func Request(w *unstructured.Unstructured, nodes []v1beta2.AvoidedNode) (bool, error) {
	known, err := decoded(w)
	if err != nil || !reserved(known) || inactive(known) || finished(known) {
		return false, err
	}
	if err := list(w, v1beta2.ReassignAnnotation, nodes); err != nil {
		return false, err
	}
	return true, setActive(w, false)
}

// Slim has of the annotations those that are read here; nil if there are none, and there is nothing to do then.
func Slim(w *kueue.Workload) map[string]string {
	var ours map[string]string
	for _, key := range []string{v1beta2.ReassignAnnotation, v1beta2.ReassignedAnnotation} {
		if text, ok := w.Annotations[key]; ok {
			if ours == nil {
				ours = map[string]string{}
			}
			ours[key] = text
		}
	}
	return ours
}

// Next is when Proceed has something to do, if nobody changes the Workload before. It is zero if it has not.
func Next(w *kueue.Workload, now time.Time) time.Time {
	if Taken(w) || withdrawn(w) {
		return now
	}
	if reserved(w) || finished(w) {
		return time.Time{}
	}
	var next time.Time
	for _, n := range nodesOf(w, v1beta2.ReassignedAnnotation) {
		if next.IsZero() || n.Until.Time.Before(next) {
			next = n.Until.Time
		}
	}
	return next
}

// Taken reports whether Kueue has the quota back that was requested.
func Taken(w *kueue.Workload) bool {
	return Requested(w) && !reserved(w) && !finished(w) && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)
}

// Requested reports whether a Workload is deactivated for other nodes, and for nothing else.
func Requested(w *kueue.Workload) bool {
	_, requested := w.Annotations[v1beta2.ReassignAnnotation]
	return requested && !overruled(w)
}

// withdrawn: others have decided about a Workload since it was deactivated for other nodes. If the request stayed, it
// would undo what a person deactivates later.
func withdrawn(w *kueue.Workload) bool {
	_, requested := w.Annotations[v1beta2.ReassignAnnotation]
	return requested && overruled(w) && !finished(w)
}

// overruled: somebody has activated the Workload, or Kueue has deactivated it for a reason of its own or of others.
func overruled(w *kueue.Workload) bool {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	another := evicted != nil && evicted.Status == metav1.ConditionTrue && strings.HasPrefix(evicted.Reason, kueue.WorkloadDeactivated+"DueTo")
	return !inactive(w) || another
}

// Proceed activates a Workload that was deactivated for other nodes, with these labels and nodes excluded, forgets
// a request that others have overruled, or the nodes whose time is over. It reports whether the Workload has changed.
func Proceed(w *unstructured.Unstructured, labels podtemplate.Avoidance, now time.Time) (bool, error) {
	known, err := decoded(w)
	if next := Next(known, now); err != nil || next.IsZero() || next.After(now) {
		return false, err
	}
	if withdrawn(known) {
		unstructured.RemoveNestedField(w.Object, "metadata", "annotations", v1beta2.ReassignAnnotation)
		return true, nil
	}
	before := nodesOf(known, v1beta2.ReassignedAnnotation)
	nodes := before
	if Taken(known) {
		nodes = nodesOf(known, v1beta2.ReassignAnnotation)
		unstructured.RemoveNestedField(w.Object, "metadata", "annotations", v1beta2.ReassignAnnotation)
		if err := setActive(w, true); err != nil {
			return false, err
		}
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n v1beta2.AvoidedNode) bool { return !now.Before(n.Until.Time) })
	if err := replace(w, before, nodes, labels); err != nil {
		return false, err
	}
	return true, list(w, v1beta2.ReassignedAnnotation, nodes)
}

// replace excludes nodes from the pod sets, and no longer those that were excluded before.
func replace(w *unstructured.Unstructured, before, nodes []v1beta2.AvoidedNode, labels podtemplate.Avoidance) error {
	podSets, _, err := unstructured.NestedSlice(w.Object, "spec", "podSets")
	if err != nil {
		return fmt.Errorf("cannot decode its pod sets: %w", err)
	}
	for i := range podSets {
		podSet, _ := podSets[i].(map[string]any)
		template, ok := podSet["template"].(map[string]any)
		if !ok {
			return fmt.Errorf("pod set %d has no template", i)
		}
		if err := podtemplate.Readmit(template, names(before)); err != nil {
			return err
		}
		if err := podtemplate.Apply(template, podtemplate.Edit{Avoid: labels, AvoidNodes: names(nodes)}); err != nil {
			return err
		}
	}
	if err := unstructured.SetNestedSlice(w.Object, podSets, "spec", "podSets"); err != nil {
		return fmt.Errorf("cannot encode its pod sets: %w", err)
	}
	return nil
}

func decoded(w *unstructured.Unstructured) (*kueue.Workload, error) {
	known := &kueue.Workload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.Object, known); err != nil {
		return known, fmt.Errorf("cannot decode the Workload: %w", err)
	}
	return known, nil
}

// nodesOf are none if the list cannot be decoded: nobody else writes it.
func nodesOf(w *kueue.Workload, annotation string) []v1beta2.AvoidedNode {
	var nodes []v1beta2.AvoidedNode
	if text := w.Annotations[annotation]; text == "" || json.Unmarshal([]byte(text), &nodes) != nil {
		return nil
	}
	return nodes
}

// list writes an annotation. One of no nodes is there, too.
func list(w *unstructured.Unstructured, annotation string, nodes []v1beta2.AvoidedNode) error {
	text, err := json.Marshal(append([]v1beta2.AvoidedNode{}, nodes...))
	if err == nil {
		err = unstructured.SetNestedField(w.Object, string(text), "metadata", "annotations", annotation)
	}
	if err != nil {
		return fmt.Errorf("cannot list nodes: %w", err)
	}
	return nil
}

func names(nodes []v1beta2.AvoidedNode) []string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.Name
	}
	return list
}

func setActive(w *unstructured.Unstructured, active bool) error {
	if err := unstructured.SetNestedField(w.Object, active, "spec", "active"); err != nil {
		return fmt.Errorf("cannot change spec.active: %w", err)
	}
	return nil
}

func inactive(w *kueue.Workload) bool { return w.Spec.Active != nil && !*w.Spec.Active }

func reserved(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved)
}

func finished(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}
