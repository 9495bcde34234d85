// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// heartbeat is the interval of status updates, much shorter than the node controller needs.
const heartbeat = 10 * time.Second

type node struct {
	name, dir, label, taint, bridge string
	api                             kubernetes.Interface
	addresses                       *addresses
}

// register creates the node, and then keeps its Ready condition up to date.
func (n *node) register(ctx context.Context) error {
	self, err := n.describe()
	if err != nil {
		return err
	}
	_, err = n.api.CoreV1().Nodes().Create(ctx, self, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = n.reportReady(ctx, self.Status)
	}
	if err != nil {
		return fmt.Errorf("cannot register the node: %w", err)
	}
	go func() {
		for range time.Tick(heartbeat) {
			if err := n.reportReady(ctx, self.Status); err != nil {
				fmt.Fprintln(os.Stderr, "cannot update the node's status:", err)
			}
		}
	}()
	return nil
}

// reportReady overwrites conditions that others set meanwhile, for instance because the
// machine was asleep.
func (n *node) reportReady(ctx context.Context, status corev1.NodeStatus) error {
	now := metav1.Now()
	for i := range status.Conditions {
		status.Conditions[i].LastHeartbeatTime = now
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": status.Conditions}})
	if err != nil {
		return err
	}
	_, err = n.api.CoreV1().Nodes().Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// describe returns the node that register creates.
func (n *node) describe() (*corev1.Node, error) {
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		return nil, fmt.Errorf("cannot read the size of the memory: %w", err)
	}
	memory := int64(machine.Totalram) * int64(machine.Unit)
	now := metav1.Now()
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(100, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			n.label: "true", corev1.LabelHostname: n.name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: n.taint, Value: "only", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: n.addresses.node.String()}, {Type: corev1.NodeHostName, Address: n.name},
			},
			NodeInfo: corev1.NodeSystemInfo{Architecture: runtime.GOARCH, OperatingSystem: runtime.GOOS, KubeletVersion: "processnode"},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now,
				Reason: "ProcessNodeReady", Message: "pods of the platform run as processes",
			}},
		},
	}, nil
}
