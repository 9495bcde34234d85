// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var (
	names     = rapid.SampledFrom([]string{"a", "b", "c"})
	devices   = rapid.SampledFrom([]corev1.ResourceName{"x/a", "x/b", "x/c"})
	statuses  = rapid.SampledFrom([]corev1.ConditionStatus{"True", "False", "Unknown"})
	effects   = rapid.SampledFrom([]corev1.TaintEffect{"NoSchedule", "PreferNoSchedule", "NoExecute"})
	reactions = rapid.Custom(func(t *rapid.T) Reaction {
		return leave(rapid.OneOf(rapid.SliceOfN(devices, 1, 3), rapid.Just([]corev1.ResourceName{AllPods})).Draw(t, "resources")...)
	})
	keys   = rapid.OneOf(names, rapid.SampledFrom([]string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}))
	taints = rapid.Custom(func(t *rapid.T) corev1.Taint {
		taint := corev1.Taint{Key: keys.Draw(t, "key"), Value: names.Draw(t, "value"), Effect: effects.Draw(t, "effect")}
		if rapid.Bool().Draw(t, "with time") {
			taint.TimeAdded = &metav1.Time{Time: time.Unix(rapid.Int64Range(1, 9).Draw(t, "added"), 0)}
		}
		return taint
	})
)

var anyRules = rapid.Custom(func(t *rapid.T) Rules {
	return Rules{
		NotReady: NotReady{Leave: rapid.Bool().Draw(t, "leave"), Grace: time.Minute},
		Labels:   rapid.MapOf(rapid.StringMatching("x/[abc]"), rapid.SliceOf(taints)).Draw(t, "labels"),
		Listed: Listed{
			Conditions: rapid.SliceOf(rapid.Custom(func(t *rapid.T) ConditionRule {
				return ConditionRule{Type: corev1.NodeConditionType(names.Draw(t, "type")), Status: statuses.Draw(t, "status"), Reaction: reactions.Draw(t, "reaction")}
			})).Draw(t, "conditions"),
			Taints: rapid.SliceOf(rapid.Custom(func(t *rapid.T) TaintRule {
				rule := TaintRule{Key: names.Draw(t, "key"), Value: rapid.Ptr(names, true).Draw(t, "value"), Reaction: reactions.Draw(t, "reaction")}
				if rapid.Bool().Draw(t, "with effect") {
					rule.TaintEffect = effects.Draw(t, "effect")
				}
				return rule
			})).Draw(t, "taints"),
			DevicesMissing: rapid.SliceOf(rapid.Custom(func(t *rapid.T) Reaction {
				return leave(rapid.SliceOfN(devices, 1, 3).Draw(t, "devices")...)
			})).Draw(t, "devicesMissing"),
		},
	}
})

var anyNode = rapid.Custom(func(t *rapid.T) *corev1.Node {
	node := &corev1.Node{}
	node.Labels = rapid.MapOf(names, names).Draw(t, "labels")
	node.Spec.Taints = rapid.SliceOf(taints).Draw(t, "taints")
	for kind, status := range rapid.MapOf(rapid.OneOf(names, rapid.Just("Ready")), statuses).Draw(t, "conditions") {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status,
			LastTransitionTime: metav1.Unix(rapid.Int64Range(1, 9).Draw(t, "since"), 0)})
	}
	node.Status.Allocatable, node.Status.Capacity = corev1.ResourceList{}, corev1.ResourceList{}
	for name, capacity := range rapid.MapOf(devices, rapid.Int64Range(0, 8)).Draw(t, "capacity") {
		node.Status.Capacity[name] = *resource.NewQuantity(capacity, resource.DecimalSI)
		node.Status.Allocatable[name] = *resource.NewQuantity(rapid.Int64Range(0, capacity).Draw(t, "allocatable"), resource.DecimalSI)
	}
	return node
})

func TestTheOrderOfRulesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, node := anyRules.Draw(t, "rules"), anyNode.Draw(t, "node")
		other := Rules{NotReady: r.NotReady, Labels: map[string][]corev1.Taint{}, Listed: Listed{
			Conditions:     rapid.Permutation(r.Conditions).Draw(t, "conditions in another order"),
			Taints:         rapid.Permutation(r.Taints).Draw(t, "taints in another order"),
			DevicesMissing: rapid.Permutation(r.DevicesMissing).Draw(t, "devices in another order"),
		}}
		for name, labels := range r.Labels {
			other.Labels[name] = rapid.Permutation(labels).Draw(t, "labels in another order")
		}
		slices.Reverse(node.Spec.Taints)
		if diff := cmp.Diff(r.Findings(node), other.Findings(node)); diff != "" {
			t.Errorf("(-one +other)\n%s", diff)
		}
	})
}

// healthy takes from a node what any rule could be about.
func healthy(r Rules, node *corev1.Node) {
	node.Labels = nil
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return r.readsTaint(t.Key) || r.NotReady.reads(t) })
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return slices.ContainsFunc(r.Conditions, func(rule ConditionRule) bool { return rule.Type == c.Type && rule.Status == c.Status })
	})
	node.Status.Allocatable = node.Status.Capacity
}

func TestAHealthyNodeHasNoFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, node := anyRules.Draw(t, "rules"), anyNode.Draw(t, "node")
		healthy(r, node)
		if got := r.Findings(node); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	})
}

func TestASlimNodeHasTheSameFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, node := anyRules.Draw(t, "rules"), anyNode.Draw(t, "node")
		want := r.Findings(node)
		for i := range node.Status.Conditions {
			node.Status.Conditions[i].LastHeartbeatTime = metav1.Unix(rapid.Int64Range(1, 9).Draw(t, "heartbeat"), 0)
		}
		if diff := cmp.Diff(want, r.Findings(r.Slim(node))); diff != "" {
			t.Errorf("(-whole +slim)\n%s", diff)
		}
	})
}
