// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/golden"
)

// pods is a pod template in its surroundings.
type pods struct {
	Defaults  *corev1.LimitRangeItem         `json:"defaults,omitempty"`
	Overheads map[string]corev1.ResourceList `json:"overheads,omitempty"`
	Pod       map[string]any                 `json:"pod"`
}

// count is what becomes of it.
type count struct {
	pods `json:",inline"`
	// Requested is what a pod requests, and Counted what Kueue would count for it as written.
	Requested corev1.ResourceList `json:"requested"`
	Counted   corev1.ResourceList `json:"counted"`
	// Stored is the template that Kueue gets; only where it has an extra.
	Stored map[string]any `json:"stored,omitempty"`
}

func (p pods) surroundings() Surroundings {
	s := Surroundings{Overheads: p.Overheads}
	if p.Defaults != nil {
		item := *p.Defaults.DeepCopy()
		item.Type = corev1.LimitTypeContainer
		s.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
	}
	return s
}

// wrapped is an AppWrapper with a Job of these pods.
func wrapped(t *testing.T, pod map[string]any) *v1beta2.AppWrapper {
	t.Helper()
	job := unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "j"},
		"spec": map[string]any{"template": map[string]any{"spec": pod}}}}
	raw, err := job.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	aw := &v1beta2.AppWrapper{}
	aw.Name, aw.Namespace = "a", "blue"
	aw.Spec.Components = make([]v1beta2.AppWrapperComponent, 1)
	aw.Spec.Components[0].Template.Raw = raw
	return aw
}

// tools/artifacts/components/kueue/podsets reads the results, and asks the pinned Kueue what it counts.
func TestAllThatAPodRequestsIsCounted(t *testing.T) {
	golden.Pairs(t, "testdata", func(t *testing.T, in []byte) []byte {
		var cases map[string]pods
		if err := yaml.UnmarshalStrict(in, &cases); err != nil {
			t.Fatal(err)
		}
		counts := map[string]count{}
		for sentence, c := range cases {
			t.Run(sentence, func(t *testing.T) { counts[sentence] = c.count(t) })
		}
		out, err := yaml.Marshal(counts)
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
}

func (p pods) count(t *testing.T) count {
	s := p.surroundings()
	aw := wrapped(t, p.Pod)
	written := aw.DeepCopy()
	before := Decode(aw)
	pod := &before.podTemplates(0)[0].pod
	c := count{pods: p, Requested: s.requested(pod), Counted: s.counted(pod)}
	missing := len(lacking(c.Requested, c.Counted)) > 0
	if refused := len(before.ValidateCounted(s)) > 0; refused != missing {
		t.Errorf("refused without an extra: %t, and something is missing: %t", refused, missing)
	}
	if limitRanges, classes := before.DependsOnSurroundings(); missing && !limitRanges && p.Defaults != nil || len(classes) != len(p.Overheads) {
		t.Errorf("depends on LimitRanges: %t, and on the classes %v", limitRanges, classes)
	}
	if err := AddExtras(aw, s); err != nil {
		t.Fatal(err)
	}
	for _, problem := range append(Decode(aw).ValidateCounted(s), ValidateCreate(aw, DefaultLimits)...) {
		t.Error(problem)
	}
	if !SameButForExtras(&written.Spec.Components[0], &aw.Spec.Components[0]) {
		t.Error("what is created is not what was written")
	}
	if sameJSON(written.Spec.Components[0].Template.Raw, aw.Spec.Components[0].Template.Raw) == missing {
		t.Errorf("the template has changed, and something was missing: %t", missing)
	}
	if missing {
		c.Stored = storedPod(t, aw)
	}
	return c
}

func storedPod(t *testing.T, aw *v1beta2.AppWrapper) map[string]any {
	t.Helper()
	var job unstructured.Unstructured
	if err := job.UnmarshalJSON(aw.Spec.Components[0].Template.Raw); err != nil {
		t.Fatal(err)
	}
	pod, _, err := unstructured.NestedMap(job.Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// What is stored without an extra may be created again from what kubectl prints, or with extras that somebody wrote.
func TestExtrasOfAnAuthorCountForNothing(t *testing.T) {
	sideCar := map[string]any{
		"initContainers": []any{map[string]any{"name": "s", "restartPolicy": "Always", "resources": map[string]any{"requests": map[string]any{"cpu": "8"}}}},
		"containers": []any{map[string]any{"name": "main"},
			map[string]any{"name": extraName, "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
	}
	aw := wrapped(t, sideCar)
	if err := AddExtras(aw, Surroundings{}); err != nil {
		t.Fatal(err)
	}
	containers := storedPod(t, aw)["containers"].([]any)
	if len(containers) != 2 {
		t.Errorf("there are %d containers", len(containers))
	}
	if problems := Decode(aw).ValidateCounted(Surroundings{}); len(problems) > 0 {
		t.Error(problems.ToAggregate())
	}
}

func TestAnotherControllerGetsNoExtras(t *testing.T) {
	aw := wrapped(t, map[string]any{"initContainers": []any{map[string]any{"name": "s", "restartPolicy": "Always",
		"resources": map[string]any{"requests": map[string]any{"cpu": "8"}}}}, "containers": []any{map[string]any{"name": "main"}}})
	other := "example.com/other"
	aw.Spec.ManagedBy = &other
	before := string(aw.Spec.Components[0].Template.Raw)
	if err := AddExtras(aw, Surroundings{}); err != nil {
		t.Fatal(err)
	}
	if after := string(aw.Spec.Components[0].Template.Raw); after != before {
		t.Error(after)
	}
}
