// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

const (
	gpuHealth = "autopilot.ibm.com/gpuhealth"
	// broken is the key of a taint, and xid a condition, in testdata/platform.yaml.
	broken = "example.com/broken"
	xid    = corev1.NodeConditionType("GpuXid")
)

// ofNodes are injected one after the other, because there is one real node. The second attempt of each is elsewhere.
var ofNodes = []fault{
	{sentence: "a device plugin does not hand out its devices", work: onDevices, early: true, inject: handOutNothing,
		ended: "UnexpectedAdmissionError", cause: "PodRejected UnexpectedAdmissionError", migrations: 1},
	{sentence: "a device breaks", work: onDevices, inject: breakOne,
		cause: "DevicesMissing nvidia.com/gpu", migrations: 1, loses: ledger.LostToNode},
	{sentence: "a condition reports an XID", work: onDevices, inject: reportXID,
		cause: "NodeCondition GpuXid=True", migrations: 1, loses: ledger.LostToNode},
	{sentence: "a node is tainted", work: onDevices, inject: taint,
		cause: "NodeTaint example.com/broken:NoExecute", migrations: 1, loses: ledger.LostToNode},
	{sentence: "a node is cordoned", work: onDevices, inject: cordon,
		cause: "NodeTaint node.kubernetes.io/unschedulable:NoSchedule", migrations: 1, loses: ledger.LostToNode},
}

// labelled is injected together with the faults of programs.
var labelled = fault{sentence: "a node is labelled EVICT", work: onDevices, inject: label,
	cause: "NodeLabel " + gpuHealth + "=EVICT", migrations: 1, loses: ledger.LostToNode}

// onDevices takes all devices of the real node.
var onDevices = work{gpus: devicesOfNode}

func label(r *room) {
	r.changeNode(r.update, func(n *corev1.Node) { n.Labels[gpuHealth] = "EVICT" }, func(n *corev1.Node) { delete(n.Labels, gpuHealth) })
}

func taint(r *room) {
	r.changeNode(r.update, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: broken, Effect: corev1.TaintEffectNoExecute})
	}, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == broken })
	})
}

func cordon(r *room) {
	r.changeNode(r.update, func(n *corev1.Node) { n.Spec.Unschedulable = true }, func(n *corev1.Node) { n.Spec.Unschedulable = false })
}

func reportXID(r *room) {
	r.changeNode(r.updateStatus, func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: xid, Status: corev1.ConditionTrue, Reason: "Xid79"})
	}, func(n *corev1.Node) {
		n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == xid })
	})
}

func (r *room) update(n *corev1.Node) error { return r.admin.Update(context.Background(), n) }
func (r *room) updateStatus(n *corev1.Node) error {
	return r.admin.Status().Update(context.Background(), n)
}

// changeNode changes the real node until the test has ended. The kubelet may write at the same moment.
func (r *room) changeNode(write func(*corev1.Node) error, change, back func(*corev1.Node)) {
	r.Helper()
	apply := func(edit func(*corev1.Node)) func() error {
		return func() error {
			n, err := r.node()
			if err == nil {
				edit(n)
				err = write(n)
			}
			return err
		}
	}
	r.Cleanup(func() {
		r.finally("node is changed back", apply(back))
		r.finally("node is as good as new", r.nodeIsWhole)
	})
	r.Await("node is changed", apply(change))
}

// finally waits after the end of a test.
func (r *room) finally(what string, holds func() error) {
	r.Helper()
	if err := sandbox.Within(context.Background(), sandbox.Limit, holds); err != nil {
		r.Errorf("waiting until %s: %v", what, err)
	}
}

func (r *room) node() (*corev1.Node, error) {
	n := &corev1.Node{}
	return n, r.admin.Get(context.Background(), client.ObjectKey{Name: name}, n)
}

// nodeIsWhole: pods come to the node, and all its devices are there.
func (r *room) nodeIsWhole() error {
	n, err := r.node()
	if err != nil {
		return err
	}
	if devices := n.Status.Allocatable[gpu]; len(n.Spec.Taints) > 0 || devices.Value() != devicesOfNode {
		return fmt.Errorf("it has the taints %v and %s devices", n.Spec.Taints, &devices)
	}
	return nil
}
