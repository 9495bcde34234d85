// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/test/same/slot"
)

// worker runs one pod.
type worker struct {
	nodes *Nodes
	last  *corev1.Pod
	life  *Life
	busy  bool
}

// count counts a start of the slot of a pod.
func (n *Nodes) count(pod *corev1.Pod) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := pod.Namespace + "/" + slot.Of(pod).String()
	n.starts[key]++
	return n.starts[key]
}

// run reports what happens to the pod, until its object is gone.
func (w *worker) run(ctx context.Context, changes <-chan *corev1.Pod) error {
	for {
		if err := w.report(ctx); err != nil {
			return err
		}
		var alarm <-chan time.Time
		if !w.life.next.IsZero() {
			alarm = time.After(time.Until(w.life.next))
		}
		w.setBusy(alarm != nil && w.life.now != pausing)
		select {
		case <-ctx.Done():
			return nil
		case pod, exists := <-changes:
			if !exists {
				return nil
			}
			w.hear(pod)
		case <-alarm:
			if err := w.life.advance(time.Now()); err != nil {
				return err
			}
		}
	}
}

// hear takes the newest object, which may say that the pod has to end.
func (w *worker) hear(pod *corev1.Pod) {
	deletedBefore := w.last.DeletionTimestamp != nil
	w.last = pod
	if pod.DeletionTimestamp != nil && !deletedBefore && pod.DeletionGracePeriodSeconds != nil {
		w.life.stop(time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second, time.Now())
	}
}

// report saves the status if it has changed, and then removes a pod that is deleted and has ended.
func (w *worker) report(ctx context.Context) error {
	status := w.life.status(w.last.Status)
	if !equal(status, w.last.Status) {
		if err := w.nodes.save(ctx, w.last, status); err != nil {
			return err
		}
		w.last = w.last.DeepCopy()
		w.last.Status = status
	}
	if w.life.now == ended && w.last.DeletionTimestamp != nil {
		return w.nodes.remove(ctx, w.last)
	}
	return nil
}

// equal compares what this node writes.
func equal(a, b corev1.PodStatus) bool {
	if a.Phase != b.Phase || len(a.ContainerStatuses) != len(b.ContainerStatuses) {
		return false
	}
	for i := range a.ContainerStatuses {
		x, y := a.ContainerStatuses[i], b.ContainerStatuses[i]
		if x.Ready != y.Ready || x.RestartCount != y.RestartCount || kind(x.State) != kind(y.State) {
			return false
		}
	}
	return true
}

func kind(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return "terminated"
	}
	return "waiting"
}

func (w *worker) setBusy(busy bool) {
	if busy != w.busy {
		by := 1
		if !busy {
			by = -1
		}
		w.nodes.addBusy(w.last.Namespace, by)
	}
	w.busy = busy
}
