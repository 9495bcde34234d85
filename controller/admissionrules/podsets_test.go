// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
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

func TestThePodsOfAnAppWrapper(t *testing.T) {
	of := func(raw string, declared ...v1beta2.AppWrapperPodSet) v1beta2.AppWrapperComponent {
		return v1beta2.AppWrapperComponent{DeclaredPodSets: declared, Template: runtime.RawExtension{Raw: []byte(raw)}}
	}
	job := of(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 3, "template": {"spec": {"nodeName": "first"}}}}`)
	pod := of(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "second"}}`)
	pods, err := Decode(&v1beta2.AppWrapper{Spec: v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{job, pod}}}).Pods()
	var got []string
	for _, p := range pods {
		got = append(got, fmt.Sprint(p.Count, " ", p.Template.Spec.NodeName))
	}
	if want := []string{"3 first", "1 second"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	for what, broken := range map[string]v1beta2.AppWrapperComponent{
		"no resource":         of(`{`),
		"a path without pods": of(string(pod.Template.Raw), v1beta2.AppWrapperPodSet{Path: "template.spec.nothing"}),
	} {
		if pods, err := Decode(&v1beta2.AppWrapper{Spec: v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{job, broken}}}).Pods(); err == nil {
			t.Errorf("%s: there are %d pod sets", what, len(pods))
		}
	}
}
