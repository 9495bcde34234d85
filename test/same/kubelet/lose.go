// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lose ends the machine of a node, as a cloud does: nothing there reports any more, and the Node is deleted. Kubernetes
// then removes its pods by itself, about a minute later. The namespace of the pod is busy until that one is gone.
func (n *Nodes) Lose(ctx context.Context, pod *corev1.Pod) error {
	n.mu.Lock()
	n.lost[pod.Spec.NodeName] = true
	if _, runs := n.lives[pod.UID]; runs {
		n.busy[pod.Namespace]++
		n.missed[pod.UID] = true
	}
	n.mu.Unlock()
	return ignoreGone(n.api.CoreV1().Nodes().Delete(ctx, pod.Spec.NodeName, metav1.DeleteOptions{}))
}

// unmiss takes note that a pod is gone; it is called with the lock.
func (n *Nodes) unmiss(pod *corev1.Pod) {
	if n.missed[pod.UID] {
		n.busy[pod.Namespace]--
		delete(n.missed, pod.UID)
	}
}

func (n *Nodes) isLost(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost[node]
}
