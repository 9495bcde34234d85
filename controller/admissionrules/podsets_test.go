// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAKnownKindIsKnownInAnyVersion(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "batch", Kind: "Job"}: true, {Group: "kubeflow.org", Kind: "MPIJob"}: true, {Kind: "ConfigMap"}: true, {Kind: "Secret"}: false, {Kind: "Job"}: false,
	} {
		if Known(kind) != want {
			t.Errorf("%v is known: %t", kind, !want)
		}
	}
}

func TestAnEditOfAFoundPodTemplateEditsTheObject(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	found, err := FindPodTemplate(job, "template.spec.template")
	if err != nil {
		t.Fatal(err)
	}
	found["metadata"] = map[string]any{"name": "edited"}
	if got, err := PodTemplate(job, "template.spec.template"); err != nil || got.Name != "edited" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestThePodTemplateOfAPodSet(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"priorityClassName": "high"}},
		"odd":      map[string]any{"spec": map[string]any{}, "metadata": "none"},
	}}}
	if got, err := PodTemplate(job, "template.spec.template"); err != nil || got.Spec.PriorityClassName != "high" {
		t.Errorf("got %v, %v", got, err)
	}
	for path, want := range map[string]string{
		"template.spec.missing": "missing",
		"template.spec.odd":     "cannot decode the pod template template.spec.odd: ",
	} {
		if _, err := PodTemplate(job, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}
