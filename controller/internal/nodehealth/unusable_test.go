// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSignsThatNewPodsGetNothing(t *testing.T) {
	r := Rules{
		Labels: map[string][]corev1.Taint{string(gpu): {
			{Key: "gpuhealth", Value: "WARN", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "gpuhealth", Value: "ERR", Effect: corev1.TaintEffectNoSchedule},
		}},
		Listed: Listed{
			Taints:         []TaintRule{{Key: "broken", TaintEffect: corev1.TaintEffectNoExecute, Reaction: leave(rdma)}},
			Conditions:     []ConditionRule{{Type: "GpuUnhealthy", Status: "True", Reaction: leave(gpu)}},
			DevicesMissing: []Reaction{leave(gpu)},
		},
	}
	for what, tc := range map[string]struct {
		node *corev1.Node
		want []string
	}{
		"a healthy node":        {labelled(map[string]string{"gpuhealth": "OK"}), nil},
		"a weak label":          {labelled(map[string]string{"gpuhealth": "WARN"}), nil},
		"a label":               {labelled(map[string]string{"gpuhealth": "ERR"}), []string{"nvidia.com/gpu: NodeLabel gpuhealth=ERR"}},
		"a condition":           {in("GpuUnhealthy", "True"), []string{"nvidia.com/gpu: NodeCondition GpuUnhealthy=True"}},
		"missing devices":       {withGPUs("1", "2"), nil},
		"cordoned":              {a(func(n *corev1.Node) { n.Spec.Unschedulable = true }), []string{"*: NodeCordoned node.kubernetes.io/unschedulable"}},
		"the taint of a cordon": {tainted(corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}), []string{"*: NodeCordoned node.kubernetes.io/unschedulable"}},
		"not ready":             {tainted(corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}), []string{"*: NodeNotReady node.kubernetes.io/not-ready"}},
		"unreachable":           {tainted(corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}), []string{"*: NodeNotReady node.kubernetes.io/unreachable"}},
		"a taint of Kubernetes": {tainted(corev1.Taint{Key: "node.kubernetes.io/disk-pressure", Effect: "NoSchedule"}), []string{"*: NodeTaint node.kubernetes.io/disk-pressure"}},
		"a weak taint":          {tainted(corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "PreferNoSchedule"}), nil},
		"memory pressure":       {tainted(corev1.Taint{Key: "node.kubernetes.io/memory-pressure", Effect: "NoSchedule"}), nil},
		"a taint with a rule":   {tainted(corev1.Taint{Key: "broken", Effect: "NoExecute"}), []string{"nvidia.com/roce_gdr: NodeTaint broken:NoExecute"}},
		"a taint without":       {tainted(corev1.Taint{Key: "broken", Effect: "NoSchedule"}), nil},
	} {
		t.Run(what, func(t *testing.T) {
			var got []string
			for _, f := range r.Unusable(tc.node) {
				got = append(got, string(f.Resource)+": "+f.String())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A taint that tells what a node is for decides which flavor the node belongs to.
func TestTaintsAboutHealth(t *testing.T) {
	r := Rules{Listed: Listed{Taints: []TaintRule{{Key: "broken", Reaction: leave(AllPods)}}}}
	for key, want := range map[string]bool{
		"broken": true, "node.kubernetes.io/disk-pressure": true, "node.cloudprovider.kubernetes.io/shutdown": true, "node.kubernetes.io/memory-pressure": true,
		"nvidia.com/gpu": false, "node-role.kubernetes.io/control-plane": false,
	} {
		if got := r.IsSign(corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}
