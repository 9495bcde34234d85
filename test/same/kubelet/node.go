// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// heartbeat is much shorter than the node controller needs.
const heartbeat = 15 * time.Second

// Nodes are all nodes of this kind in a cluster.
type Nodes struct {
	api kubernetes.Interface
	mu  sync.Mutex
	// lives has a channel for each pod: the newest object, closed once it is gone.
	lives map[types.UID]chan *corev1.Pod
	// starts counts by namespace and slot; busy counts by namespace the pods whose moment will end.
	starts map[string]int
	busy   map[string]int
	// lost are the nodes whose machines are gone; missed are pods that were there, until their objects are gone.
	lost   map[string]bool
	missed map[types.UID]bool
}

// Label is on all simulated nodes.
const Label = "localcluster.mlbatch.dev/simulated"

// Start registers so many nodes, and runs their pods until the context ends.
func Start(ctx context.Context, api kubernetes.Interface, count int) (*Nodes, error) {
	n := &Nodes{api: api, lives: map[types.UID]chan *corev1.Pod{}, starts: map[string]int{}, busy: map[string]int{}, lost: map[string]bool{}, missed: map[types.UID]bool{}}
	for i := range count {
		if err := n.Register(ctx, fmt.Sprintf("%s%d", prefix, i), nil); err != nil {
			return nil, err
		}
	}
	go n.beat(ctx)
	return n, nil
}

// prefix is of the names of all simulated nodes.
const prefix = "play-"

// Register adds a node. Only pods that name its owner, a label and a taint, come there; nil for everybody's.
func (n *Nodes) Register(ctx context.Context, name string, owner *corev1.Taint) error {
	all := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("512Gi"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8"), "ephemeral-storage": resource.MustParse("1Ti")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			Label: "true", corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "nvidia.com/gpu.present": "true",
		}},
		Status: corev1.NodeStatus{Capacity: all, Allocatable: all, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}},
	}
	if owner != nil {
		node.Labels[owner.Key], node.Spec.Taints = owner.Value, []corev1.Taint{*owner}
	}
	if _, err := n.api.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot register node %s: %w", name, err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &name, LeaseDurationSeconds: new(int32(160)), RenewTime: ptr.To(metav1.NowMicro()),
	}}
	_, err := n.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// beat renews the leases of all nodes.
func (n *Nodes) beat(ctx context.Context) {
	for {
		if err := n.renew(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "cannot renew the leases of nodes:", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(heartbeat):
		}
	}
}

func (n *Nodes) renew(ctx context.Context) error {
	all, err := n.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: Label})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec": {"renewTime": %q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	for i := range all.Items {
		_, wrong := n.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, all.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		err = errors.Join(err, ignoreGone(wrong))
	}
	return err
}

// See takes note of a pod, after each of its changes and once it is gone.
func (n *Nodes) See(ctx context.Context, pod *corev1.Pod, gone bool) {
	if pod.Spec.NodeName == "" || !isOurs(pod.Spec.NodeName) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	life, known := n.lives[pod.UID]
	switch {
	case gone && known:
		close(life)
		delete(n.lives, pod.UID)
		n.unmiss(pod)
	case gone:
	case known:
		select {
		case <-life: // what it has not looked at yet is old
		default:
		}
		life <- pod
	case pod.Status.Phase == corev1.PodPending:
		life = make(chan *corev1.Pod, 1)
		n.lives[pod.UID] = life
		go n.live(ctx, pod, life)
	}
}

func isOurs(node string) bool { return strings.HasPrefix(node, prefix) }

// Busy reports whether something will happen to a pod of a namespace without anybody's doing.
func (n *Nodes) Busy(namespace string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.busy[namespace] > 0
}

func (n *Nodes) addBusy(namespace string, by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy[namespace] += by
}

// live runs one pod until it is gone.
func (n *Nodes) live(ctx context.Context, pod *corev1.Pod, changes <-chan *corev1.Pod) {
	w := &worker{nodes: n, last: pod}
	defer w.setBusy(false)
	life, err := newLife(pod, func() int { return n.count(pod) }, time.Now())
	if err == nil {
		w.life = life
		err = w.run(ctx, changes)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "pod %s/%s: %v\n", pod.Namespace, pod.Name, err)
	}
}

// save writes the status of a pod.
func (n *Nodes) save(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if n.isLost(pod.Spec.NodeName) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = n.api.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

// remove removes the object of a pod whose containers have ended.
func (n *Nodes) remove(ctx context.Context, pod *corev1.Pod) error {
	if n.isLost(pod.Spec.NodeName) {
		return nil
	}
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return ignoreGone(n.api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *now))
}

// ignoreGone ignores that a pod is gone, or that another one has its name.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
