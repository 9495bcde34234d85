// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(n)
	}
	return n
}

func TestNodesAreReadyWhenAllExistAndAreUntainted(t *testing.T) {
	for name, c := range map[string]struct {
		simulated int
		nodes     []client.Object
		want      string
	}{
		"all are there":                 {1, []client.Object{node("a"), node("gpu-0")}, ""},
		"none is simulated":             {-1, []client.Object{node("a")}, ""},
		"one is missing":                {2, []client.Object{node("a"), node("gpu-0")}, "2 of 3 nodes exist"},
		"one says that it is not ready": {-1, []client.Object{node("a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })}, "node a has Ready=False: "},
		"one has no space left": {-1, []client.Object{node("a", func(n *corev1.Node) {
			full := corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "kubelet has disk pressure"}
			n.Status.Conditions = append(n.Status.Conditions, full)
		})}, "node a has DiskPressure=True: kubelet has disk pressure"},
		"one has space left": {-1, []client.Object{node("a", func(n *corev1.Node) {
			roomy := corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}
			n.Status.Conditions = append(n.Status.Conditions, roomy)
		})}, ""},
		"one has said nothing yet": {-1, []client.Object{node("a", func(n *corev1.Node) { n.Status.Conditions = nil })}, "node a is not ready"},
		"the controller has not looked at one": {-1, []client.Object{node("a", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		})}, "node a is not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			cluster.config.SimulatedNodes = c.simulated
			wantMissing(t, cluster.nodesReady(t.Context(), fake.NewClientBuilder().WithObjects(c.nodes...).Build()), c.want)
		})
	}
}

func TestDNSIsReadyWhenAPodOfCoreDNSIs(t *testing.T) {
	dns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
	wantMissing(t, dnsReady(t.Context(), fake.NewFakeClient()), `deployments.apps "coredns" not found`)
	wantMissing(t, dnsReady(t.Context(), fake.NewFakeClient(dns)), "no pod of Deployment kube-system/coredns is ready")
	dns.Status.ReadyReplicas = 1 // counts pods of the old template
	wantMissing(t, dnsReady(t.Context(), fake.NewFakeClient(dns)), "no pod of Deployment kube-system/coredns is ready")
	dns.Status.UpdatedReplicas = 1
	wantMissing(t, dnsReady(t.Context(), fake.NewFakeClient(dns)), "")
}

func wantMissing(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheClustersObjectsCanBeAppliedTwice(t *testing.T) {
	c, _ := newCluster(t)
	api := fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).Build()
	for range 2 {
		if err := c.applyAll(t.Context(), api); err != nil {
			t.Fatal(err)
		}
		if err := c.addSimulatedNode(t.Context(), api, 3); err != nil {
			t.Fatal(err)
		}
	}
	got := &corev1.Node{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "gpu-3"}, got); err != nil {
		t.Fatal(err)
	}
	if gpus := got.Status.Allocatable["nvidia.com/gpu"]; gpus.Value() != gpusPerNode {
		t.Errorf("a simulated node has %v GPUs", gpus.Value())
	}
	want := []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	if diff := cmp.Diff(want, got.Spec.Taints); diff != "" {
		t.Error(diff)
	}
	if got.Labels[simulatedNodeLabel] != "true" || got.Annotations["kwok.x-k8s.io/node"] != "fake" {
		t.Errorf("KWOK does not know the node by %v, %v", got.Labels, got.Annotations)
	}
	dns := &appsv1.Deployment{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, dns); err != nil {
		t.Fatal(err)
	}
	if got := dns.Spec.Template.Spec; got.Containers[0].Image != coreDNSImage || got.NodeSelector[realNodeLabel] != "true" {
		t.Errorf("CoreDNS runs %s where %v", got.Containers[0].Image, got.NodeSelector)
	}
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := api.List(t.Context(), bindings); err != nil || len(bindings.Items) == 0 {
		t.Errorf("kube-proxy may do nothing (%v)", err)
	}
}

func TestACancelledWaitIsNoTimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := poll{time.Minute, time.Millisecond}.until(ctx, "nodes", func(context.Context) error {
		cancel()
		return errors.New("1 of 3 nodes exist")
	})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "did not become ready") {
		t.Errorf("got %v", err)
	}
}

func TestUntilPollsAgain(t *testing.T) {
	polls := 0
	err := poll{time.Minute, time.Millisecond}.until(t.Context(), "nodes", func(context.Context) error {
		if polls++; polls < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || polls != 2 {
		t.Errorf("%d polls, %v", polls, err)
	}
}
