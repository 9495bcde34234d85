// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// publish saves the pod's status if it changed.
func (w *worker) publish(ctx context.Context) {
	now := status(w.pod, w.last, w.state, metav1.Now())
	patch, err := difference(w.last, now, w.pod.UID)
	var saved *corev1.Pod
	if err == nil && patch != nil {
		saved, err = w.node.api.CoreV1().Pods(w.pod.Namespace).Patch(ctx, w.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	w.unsaved = err != nil
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "cannot save the status of %s/%s: %v\n", w.pod.Namespace, w.pod.Name, err)
	case saved != nil:
		w.last, w.version = saved.Status, saved.ResourceVersion
	}
}

// difference is the patch from one status to another, or nil. It keeps what others changed
// meanwhile.
func difference(from, to corev1.PodStatus, uid types.UID) ([]byte, error) {
	object := func(s corev1.PodStatus) map[string]any { return map[string]any{"status": s} }
	before, err := json.Marshal(object(from))
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(object(to))
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	var whole map[string]any
	if err := json.Unmarshal(patch, &whole); err != nil {
		return nil, err
	}
	whole["metadata"] = map[string]any{"uid": uid} // not of a new pod with the same name
	return json.Marshal(whole)
}

// retrySave is when to retry a failed status update.
func (w *worker) retrySave() <-chan time.Time {
	if !w.unsaved {
		return nil
	}
	return time.After(retry)
}

// notify passes a changed pod to the worker. Only the newest one counts.
func (w *worker) notify(pod *corev1.Pod) {
	select {
	case <-w.heard:
	default:
	}
	w.heard <- pod
}

// hear restores our part of the status after others changed it, as the node controller does
// for an unreachable node. It keeps their part.
func (w *worker) hear(ctx context.Context, pod *corev1.Pod) {
	if order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, w.version); err == nil && order <= 0 {
		return // we saved a newer one
	}
	w.last, w.version = *pod.Status.DeepCopy(), pod.ResourceVersion
	if w.state.now != (corev1.ContainerState{}) { // else there is no status yet
		w.publish(ctx)
	}
}
