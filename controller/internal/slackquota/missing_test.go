// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

func taintOf(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

// A node has 4 GPUs, of 8 of the queue.
func TestWhatOfANodeIsMissing(t *testing.T) {
	for what, row := range map[string]struct {
		change   func(*corev1.Node)
		gpu, cpu string
	}{
		"a healthy node":                  {func(*corev1.Node) {}, "", ""},
		"others are preferred":            {func(n *corev1.Node) { n.Labels[healthLabel] = "WARN" }, "", ""},
		"no new pods":                     {func(n *corev1.Node) { n.Labels[healthLabel] = "ERR" }, "4", ""},
		"pods have to leave":              {func(n *corev1.Node) { n.Labels[healthLabel] = "EVICT" }, "4", ""},
		"another value of the label":      {func(n *corev1.Node) { n.Labels[healthLabel] = "PASS" }, "", ""},
		"a condition with a rule":         {func(n *corev1.Node) { n.Status.Conditions = conditions("GpuUnhealthy", "True") }, "4", ""},
		"the condition says the opposite": {func(n *corev1.Node) { n.Status.Conditions = conditions("GpuUnhealthy", "False") }, "", ""},
		"a condition about all pods":      {func(n *corev1.Node) { n.Status.Conditions = conditions("KernelDeadlock", "True") }, "4", "104"},
		"a taint with a rule":             {taint("repair", corev1.TaintEffectNoSchedule), "4", "104"},
		"cordoned":                        {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "4", "104"},
		"cordoned, with the taint":        {taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), "4", "104"},
		"not ready":                       {taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), "4", "104"},
		"unreachable":                     {taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), "4", "104"},
		"the disk is full":                {taint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule), "4", "104"},
		"memory is low: most pods start":  {taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule), "", ""},
		"a cloud has not set it up":       {taint("node.cloudprovider.kubernetes.io/uninitialized", corev1.TaintEffectNoSchedule), "4", "104"},
		"it is being removed": {func(n *corev1.Node) {
			n.Spec.Unschedulable, n.DeletionTimestamp = true, &metav1.Time{Time: time.Unix(1, 0)}
		}, "", ""},
		"a GPU is broken":                         {allocatable(3), "7", ""},
		"a GPU is broken, and pods have to leave": {func(n *corev1.Node) { allocatable(3)(n); n.Labels[healthLabel] = "EVICT" }, "4", ""},
		"a GPU is broken, and the node cordoned":  {func(n *corev1.Node) { allocatable(3)(n); n.Spec.Unschedulable = true }, "4", "104"},
		"the device plugin is away":               {allocatable(0), "4", ""},
		"two signs":                               {func(n *corev1.Node) { n.Spec.Unschedulable = true; n.Labels[healthLabel] = "EVICT" }, "4", "104"},
	} {
		t.Run(what, func(t *testing.T) {
			n := nodeOf("a", 4)
			row.change(n)
			c := newCluster(t, "8", n)
			c.rules.Conditions = []nodehealth.ConditionRule{
				{Type: "GpuUnhealthy", Status: "True", Reaction: leave(gpu)}, {Type: "KernelDeadlock", Status: "True", Reaction: leave(nodehealth.AllPods)},
			}
			c.rules.Taints = []nodehealth.TaintRule{{Key: "repair", Reaction: leave(nodehealth.AllPods)}}
			c.queue.Spec.ResourceGroups = append(c.queue.Spec.ResourceGroups, group("all", corev1.ResourceList{corev1.ResourceCPU: count(200)}))
			c.settle()
			c.lends("all", gpu, row.gpu)
			c.lends("all", corev1.ResourceCPU, row.cpu)
		})
	}
}

func leave(resources ...corev1.ResourceName) nodehealth.Reaction {
	return nodehealth.Reaction{Resources: resources, Effect: corev1.TaintEffectNoExecute}
}

func conditions(kind corev1.NodeConditionType, status corev1.ConditionStatus) []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: kind, Status: status}}
}

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, taintOf(key, "", effect)) }
}

func allocatable(devices int64) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[gpu] = count(devices) }
}

// All nodes are cordoned: what counts is which are the flavor's.
func TestWhichNodesBelongToAFlavor(t *testing.T) {
	dedicated := taintOf("nvidia.com/gpu", "present", corev1.TaintEffectNoSchedule)
	for what, row := range map[string]struct {
		node   func(*corev1.Node)
		flavor func(*kueue.ResourceFlavorSpec)
		lends  string
	}{
		"a flavor without labels has every node": {func(*corev1.Node) {}, func(*kueue.ResourceFlavorSpec) {}, "4"},
		"but not those of the control plane": {taint("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule),
			func(*kueue.ResourceFlavorSpec) {}, ""},
		"a label is missing":     {func(*corev1.Node) {}, func(f *kueue.ResourceFlavorSpec) { f.NodeLabels = map[string]string{"model": ""} }, ""},
		"another value":          {func(n *corev1.Node) { n.Labels["model"] = "a100" }, labelled, ""},
		"the label":              {func(n *corev1.Node) { n.Labels["model"] = "h100" }, labelled, "4"},
		"one of two labels":      {func(n *corev1.Node) { n.Labels["model"] = "h100" }, func(f *kueue.ResourceFlavorSpec) { labelled(f); f.NodeLabels["zone"] = "1" }, ""},
		"a taint":                {tainted(dedicated), func(*kueue.ResourceFlavorSpec) {}, ""},
		"a taint that only asks": {taint("nvidia.com/gpu", corev1.TaintEffectPreferNoSchedule), func(*kueue.ResourceFlavorSpec) {}, "4"},
		"a taint that is tolerated": {tainted(dedicated), func(f *kueue.ResourceFlavorSpec) {
			f.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
		}, "4"},
		"a taint of another effect is tolerated": {tainted(dedicated), func(f *kueue.ResourceFlavorSpec) {
			f.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
		}, ""},
		"a taint of the flavor": {tainted(dedicated), func(f *kueue.ResourceFlavorSpec) { f.NodeTaints = []corev1.Taint{dedicated} }, "4"},
		"the taint of the flavor with another value": {tainted(dedicated), func(f *kueue.ResourceFlavorSpec) {
			f.NodeTaints = []corev1.Taint{taintOf("nvidia.com/gpu", "", corev1.TaintEffectNoSchedule)}
		}, ""},
		"memory is low":            {taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule), func(*kueue.ResourceFlavorSpec) {}, "4"},
		"a taint about its health": {taint("repair", corev1.TaintEffectNoSchedule), func(*kueue.ResourceFlavorSpec) {}, "4"},
	} {
		t.Run(what, func(t *testing.T) {
			n := nodeOf("a", 4)
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{taintOf(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)}
			row.node(n)
			c := newCluster(t, "8", n)
			c.rules.Taints = []nodehealth.TaintRule{{Key: "repair", Reaction: leave(nodehealth.AllPods)}}
			row.flavor(&c.flavors[0].Spec)
			c.settle()
			c.lends("all", gpu, row.lends)
		})
	}
}

func labelled(f *kueue.ResourceFlavorSpec) { f.NodeLabels = map[string]string{"model": "h100"} }

func tainted(t corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, t) }
}
