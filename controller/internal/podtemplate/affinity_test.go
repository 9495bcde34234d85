// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const gpuHealth = "autopilot.ibm.com/gpuhealth"

func avoidance() Avoidance {
	return Avoidance{Weight: 50, Taints: map[string][]corev1.Taint{
		"nvidia.com/gpu": {
			{Key: gpuHealth, Value: "WARN", Effect: corev1.TaintEffectPreferNoSchedule},
			{Key: gpuHealth, Value: "TESTING", Effect: corev1.TaintEffectNoSchedule},
			{Key: gpuHealth, Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
		},
		"nvidia.com/roce_gdr": {
			{Key: "network", Value: "BROKEN", Effect: corev1.TaintEffectNoExecute},
			{Key: gpuHealth, Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
		},
	}}
}

// asking is a pod spec whose container requests resources, with this node affinity.
func asking(containers, kind string, resources object, nodeAffinity object) object {
	spec := object{containers: []any{object{"name": "main", "resources": object{kind: resources}}}}
	if nodeAffinity != nil {
		spec["affinity"] = object{"nodeAffinity": nodeAffinity}
	}
	return object{"spec": spec}
}

func gpuPod(nodeAffinity object) object {
	return asking("containers", "limits", object{"nvidia.com/gpu": "8"}, nodeAffinity)
}

func required(terms ...any) object {
	return object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": append([]any{}, terms...)}}
}

func and(a, b object) object {
	both := runtime.DeepCopyJSON(a)
	for key, value := range b {
		both[key] = value
	}
	return both
}

func expression(key, operator string, values ...any) object {
	return object{"key": key, "operator": operator, "values": values}
}

func term(expressions ...any) object { return object{"matchExpressions": expressions} }

func TestPodsKeepAwayFromUnhealthyNodes(t *testing.T) {
	healthy := expression(gpuHealth, "NotIn", "TESTING", "EVICT")
	fast := expression("disk", "In", "ssd")
	named := object{"key": "metadata.name", "operator": "In", "values": []any{"node-1"}}
	advice := object{"preferredDuringSchedulingIgnoredDuringExecution": []any{
		object{"weight": int64(50), "preference": term(expression(gpuHealth, "NotIn", "WARN"))},
	}}
	cases := map[string]struct{ template, want object }{
		"pods without resources of the kind go anywhere": {
			asking("containers", "requests", object{"cpu": "1"}, nil), asking("containers", "requests", object{"cpu": "1"}, nil),
		},
		"pods that request 0 of it go anywhere": {
			asking("containers", "requests", object{"nvidia.com/gpu": "0"}, nil), asking("containers", "requests", object{"nvidia.com/gpu": "0"}, nil),
		},
		"parts of a GPU are on a GPU": {
			asking("containers", "limits", object{"nvidia.com/mig-1g.10gb": "1"}, nil),
			asking("containers", "limits", object{"nvidia.com/mig-1g.10gb": "1"}, and(required(term(healthy)), advice)),
		},
		"time slices of a GPU are on a GPU": {
			asking("containers", "limits", object{"nvidia.com/gpu.shared": "1"}, nil),
			asking("containers", "limits", object{"nvidia.com/gpu.shared": "1"}, and(required(term(healthy)), advice)),
		},
		"a limit is a request": {gpuPod(nil), gpuPod(and(required(term(healthy)), advice))},
		"a request is one, too": {
			asking("containers", "requests", object{"nvidia.com/gpu": int64(1)}, nil),
			asking("containers", "requests", object{"nvidia.com/gpu": int64(1)}, and(required(term(healthy)), advice)),
		},
		"an init container may ask for it": {
			asking("initContainers", "limits", object{"nvidia.com/gpu": "1"}, nil),
			asking("initContainers", "limits", object{"nvidia.com/gpu": "1"}, and(required(term(healthy)), advice)),
		},
		"every alternative gets the condition, and keeps its own": {
			gpuPod(required(term(fast), term(expression("zone", "Exists")), object{"matchFields": []any{named}})),
			gpuPod(and(required(term(fast, healthy), term(object{"key": "zone", "operator": "Exists"}, healthy),
				object{"matchFields": []any{named}, "matchExpressions": []any{healthy}}), advice)),
		},
		"no alternatives at all become one": {gpuPod(required()), gpuPod(and(required(term(healthy)), advice))},
		"an alternative that admits no node admits none afterwards": {
			gpuPod(required(object{}, term(fast))), gpuPod(and(required(object{}, term(fast, healthy)), advice)),
		},
		"what is said already is not said again": {
			gpuPod(and(required(term(expression(gpuHealth, "NotIn", "ERR", "TESTING", "EVICT"))), advice)),
			gpuPod(and(required(term(expression(gpuHealth, "NotIn", "ERR", "TESTING", "EVICT"))), advice)),
		},
		"what is said in part is said": {
			gpuPod(and(required(term(expression(gpuHealth, "NotIn", "EVICT"))), advice)),
			gpuPod(and(required(term(expression(gpuHealth, "NotIn", "EVICT"), healthy)), advice)),
		},
		"each label has one condition, whatever resources it is about": {
			asking("containers", "limits", object{"nvidia.com/gpu": "8", "nvidia.com/roce_gdr": "2"}, nil),
			asking("containers", "limits", object{"nvidia.com/gpu": "8", "nvidia.com/roce_gdr": "2"},
				and(required(term(healthy, expression("network", "NotIn", "BROKEN"))), advice)),
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := runtime.DeepCopyJSON(c.template)
			for _, occasion := range []string{"once", "twice"} {
				if err := Apply(got, Edit{Avoid: avoidance()}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(normal(t, c.want), normal(t, got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", occasion, diff)
				}
			}
		})
	}
}

// normal decodes and encodes a pod spec.
func normal(t *testing.T, template object) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template["spec"].(object), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// Nodes are avoided by name, unless the pod's node is chosen already.
func TestPodsKeepAwayFromNodesByName(t *testing.T) {
	not := func(name string) object {
		return object{"key": "metadata.name", "operator": "NotIn", "values": []any{name}}
	}
	fast := expression("disk", "In", "ssd")
	plain := func(field string, value any) object {
		return object{"spec": object{"containers": []any{object{"name": "main"}}, field: value}}
	}
	affinity := func(terms ...any) object { return plain("affinity", object{"nodeAffinity": required(terms...)}) }
	pinned := plain("nodeSelector", object{"kubernetes.io/hostname": "a"})
	assigned := plain("schedulingGates", []any{object{"name": "kueue.x-k8s.io/topology"}})
	named := plain("nodeName", "a")
	for sentence, c := range map[string]struct{ template, want object }{
		"any pod":                            {plain("priority", int64(0)), and2(plain("priority", int64(0)), affinity(object{"matchFields": []any{not("a"), not("b")}}))},
		"every alternative":                  {affinity(term(fast), object{"matchFields": []any{not("a")}}), affinity(object{"matchExpressions": []any{fast}, "matchFields": []any{not("a"), not("b")}}, object{"matchFields": []any{not("a"), not("b")}})},
		"not one that selects its node":      {pinned, pinned},
		"not one that Kueue assigns":         {assigned, assigned},
		"not one that names its node":        {named, named},
		"not one that admits no node at all": {affinity(object{}), affinity(object{})},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := runtime.DeepCopyJSON(c.template)
			for _, occasion := range []string{"once", "twice"} {
				if err := Apply(got, Edit{AvoidNodes: []string{"a", "b"}}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(normal(t, c.want), normal(t, got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", occasion, diff)
				}
			}
		})
	}
}

// and2 is both pod templates.
func and2(a, b object) object {
	return object{"spec": and(a["spec"].(object), b["spec"].(object))}
}

func TestOtherAffinitiesStay(t *testing.T) {
	template := gpuPod(nil)
	apart := object{"podAntiAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": []any{object{"topologyKey": "kubernetes.io/hostname"}}}}
	template["spec"].(object)["affinity"] = apart
	if err := Apply(template, Edit{Avoid: avoidance()}); err != nil {
		t.Fatal(err)
	}
	got := normal(t, template).Affinity
	if got.PodAntiAffinity == nil || len(got.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 || got.NodeAffinity == nil {
		t.Errorf("got %+v", got)
	}
}

func TestOtherNodesArePreferred(t *testing.T) {
	template := map[string]any{}
	if err := Apply(template, Edit{AvoidNodes: []string{"a"}, DislikeNodes: []string{"b", "c"}}); err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedMap(template, "spec", "affinity", "nodeAffinity")
	not := func(name string) any {
		return map[string]any{"key": "metadata.name", "operator": "NotIn", "values": []any{name}}
	}
	want := map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchFields": []any{not("a")}}}},
		"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"weight": int64(100), "preference": map[string]any{"matchFields": []any{not("b"), not("c")}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithoutTaintsNothingIsAvoided(t *testing.T) {
	template := gpuPod(nil)
	if err := Apply(template, Edit{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gpuPod(nil), template); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What Apply has added goes again, and nothing else.
func TestNodesAreReadmitted(t *testing.T) {
	fast, healthy := expression("disk", "In", "ssd"), expression(gpuHealth, "NotIn", "TESTING", "EVICT")
	for sentence, nodeAffinity := range map[string]object{
		"to pods of which nothing was known": nil,
		"to pods that want certain nodes":    required(term(fast)),
		"to pods that have alternatives":     required(term(fast), term(expression("disk", "In", "nvme"))),
		"to pods with an empty alternative":  required(object{}, term(fast)),
		"to pods that avoid another node":    required(object{"matchFields": []any{expression("metadata.name", "NotIn", "their-own")}}),
		"to pods that avoid a label":         required(term(healthy)),
	} {
		t.Run(sentence, func(t *testing.T) {
			template, without := gpuPod(nodeAffinity), gpuPod(nodeAffinity)
			avoid := Edit{AvoidNodes: []string{"x", "y"}}
			if err := Apply(template, avoid); err != nil {
				t.Fatal(err)
			}
			if cmp.Equal(without, template) {
				t.Fatal("nothing is avoided")
			}
			if err := Readmit(template, avoid.AvoidNodes); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asSpec(t, without), asSpec(t, template)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// asSpec decodes a template, without an affinity that says nothing.
func asSpec(t *testing.T, template object) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	encoded, _ := template["spec"].(object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(encoded, spec); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(spec.Affinity, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}) {
		spec.Affinity = nil
	}
	return spec
}
