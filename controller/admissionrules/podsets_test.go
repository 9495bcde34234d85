// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
