// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
)

func getNode(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, admin.Get(ctx, client.ObjectKey{Name: name}, node)
}

// change changes a node until its test has ended.
func change(t *testing.T, name string, edit func(*corev1.Node)) {
	t.Helper()
	t.Cleanup(func() { heal(t, name) })
	if err := update(t.Context(), name, edit); err != nil {
		t.Fatal(err)
	}
}

func update(ctx context.Context, name string, edit func(*corev1.Node)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := getNode(ctx, name)
		if err == nil {
			edit(node)
			err = admin.Update(ctx, node)
		}
		return err
	})
}

// changeStatus changes the status of a node until its test has ended.
func changeStatus(t *testing.T, name string, edit func(*corev1.NodeStatus)) {
	t.Helper()
	t.Cleanup(func() { heal(t, name) })
	if err := updateStatus(t.Context(), name, edit); err != nil {
		t.Fatal(err)
	}
}

func updateStatus(ctx context.Context, name string, edit func(*corev1.NodeStatus)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := getNode(ctx, name)
		if err == nil {
			edit(&node.Status)
			err = admin.Status().Update(ctx, node)
		}
		return err
	})
}

// simulation is the annotation of the nodes that KWOK simulates.
const simulation = "kwok.x-k8s.io/node"

const gpuHealth = "autopilot.ibm.com/gpuhealth"

// unplug ends the simulation of a node: from now on its kubelet does nothing.
func unplug(t *testing.T, name string) {
	t.Helper()
	change(t, name, func(n *corev1.Node) { delete(n.Annotations, simulation) })
}

// kill unplugs a node whose kubelet has reported last that it is not ready, which is noticed
// sooner than silence.
func kill(t *testing.T, name string) {
	t.Helper()
	unplug(t, name)
	notReady(t, name, corev1.ConditionFalse)
}

// silence is what the node controller makes of a kubelet that is silent. KWOK renews the leases of all nodes, so
// that it would never say so itself.
func silence(t *testing.T, name string) {
	t.Helper()
	unplug(t, name)
	notReady(t, name, corev1.ConditionUnknown)
}

// notReady reports this status of a node until it is healed: on a busy machine, KWOK may still make the node Ready for
// what it saw before it was unplugged.
func notReady(t *testing.T, name string, status corev1.ConditionStatus) {
	t.Helper()
	if err := report(t.Context(), name, corev1.NodeReady, status); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-ended
		if node, err := getNode(context.Background(), name); t.Failed() {
			t.Logf("node %s: %v, taints %v, conditions %v", name, err, node.Spec.Taints, node.Status.Conditions)
		}
	})
	go func() {
		defer close(ended)
		wait.UntilWithContext(ctx, func(ctx context.Context) { staysNotReady(ctx, t, name, status) }, time.Second)
	}()
}

func staysNotReady(ctx context.Context, t *testing.T, name string, status corev1.ConditionStatus) {
	node, err := getNode(ctx, name)
	if err != nil || node.Annotations[simulation] != "" { // it is deleted, or looked at again, or healed
		return
	}
	is := func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady && c.Status == status }
	if slices.ContainsFunc(node.Status.Conditions, is) {
		return
	}
	t.Logf("node %s is Ready again: %v", name, node.Status.Conditions)
	if err := report(ctx, name, corev1.NodeReady, status); err != nil && ctx.Err() == nil {
		t.Logf("node %s: %v", name, err)
	}
}

func report(ctx context.Context, name string, kind corev1.NodeConditionType, status corev1.ConditionStatus) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "status": %q, "reason": "Fault", "lastHeartbeatTime": %q, "lastTransitionTime": %q}]}}`, kind, status, now, now)
	return admin.Status().Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
}

// heal makes a node as good as new, and waits until everybody knows.
func heal(t *testing.T, name string) {
	ctx := context.Background()
	err := update(ctx, name, func(n *corev1.Node) {
		delete(n.Labels, gpuHealth)
		n.Annotations[simulation] = "fake"
		n.Spec.Unschedulable = false
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == broken || t.Key == unlisted })
	})
	if apierrors.IsNotFound(err) {
		err = recreate(ctx, name)
	}
	healthy := func(s *corev1.NodeStatus) {
		s.Capacity[gpu], s.Allocatable[gpu] = resource.MustParse("8"), resource.MustParse("8")
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.NodeCondition) bool { return c.Type == xid })
	}
	err = errors.Join(err, updateStatus(ctx, name, healthy), report(ctx, name, corev1.NodeReady, corev1.ConditionTrue),
		report(ctx, name, corev1.NodeDiskPressure, corev1.ConditionFalse))
	if err != nil {
		t.Errorf("cannot heal node %s: %v", name, err)
	}
	err = patience.Poll(ctx, time.Second/10, func(ctx context.Context) (bool, error) {
		node, err := getNode(ctx, name)
		return err == nil && len(node.Spec.Taints) == 0, nil
	})
	if err != nil {
		t.Errorf("node %s is not healed: %v", name, err)
	}
}

const (
	broken = "example.com/broken"
	// unlisted is a taint of which the configuration says nothing.
	unlisted = "example.com/unlisted"
	xid      = corev1.NodeConditionType("GpuXid")
)

// recreate makes a node like another.
func recreate(ctx context.Context, name string) error {
	like, err := getNode(ctx, "gpu-0")
	if err != nil {
		return err
	}
	return makeNode(ctx, like, name, map[string]string{simulation: "fake"})
}

// makeNode makes a node. Without an annotation it has no kubelet.
func makeNode(ctx context.Context, like *corev1.Node, name string, annotations map[string]string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: like.Labels, Annotations: annotations}}
	node.Labels[corev1.LabelHostname] = name
	if err := admin.Create(ctx, node); err != nil {
		return err
	}
	return updateStatus(ctx, name, func(s *corev1.NodeStatus) {
		s.Capacity, s.Allocatable = like.Status.Capacity, like.Status.Allocatable.DeepCopy()
	})
}

// fail ends a pod as its kubelet would.
func fail(t *testing.T, pod *corev1.Pod, reason string, exitCode int32) {
	t.Helper()
	failBecause(t, pod, reason, "", "Error", exitCode)
}

// failBecause: the kubelet also says why it has ended the pod, and what ended the container.
func failBecause(t *testing.T, pod *corev1.Pod, reason, message, end string, exitCode int32) {
	t.Helper()
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
	pod.Status.ContainerStatuses = nil
	if exitCode != 0 {
		ended := &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: end, FinishedAt: metav1.Now()}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "registry.example/work:1", State: corev1.ContainerState{Terminated: ended}}}
	}
	pod.ResourceVersion = ""
	if err := admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// withoutKubelet is how the names of such nodes begin.
const withoutKubelet = "lifeless-"

// lifelessOf are the pods on such nodes.
func lifelessOf(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Spec.NodeName, withoutKubelet) })
}

// lifeless makes a node without a kubelet, until the test has ended.
func lifeless(t *testing.T) string {
	t.Helper()
	name := withoutKubelet + newName()
	like, err := getNode(t.Context(), "gpu-0")
	if err == nil {
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				t.Error(err)
			}
		})
		err = makeNode(t.Context(), like, name, nil)
	}
	if err == nil {
		err = report(t.Context(), name, corev1.NodeReady, corev1.ConditionTrue)
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, time.Minute, "pods may come to "+name, func(ctx context.Context) error {
		node, err := getNode(ctx, name)
		if err == nil && len(node.Spec.Taints) > 0 {
			err = fmt.Errorf("its taints are %v", node.Spec.Taints)
		}
		return err
	})
	return name
}
