// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// Known tells whether the pods of a kind are counted without a declaration. In another version
// than the known ones, a known kind is refused.
func Known(kind schema.GroupKind) bool {
	return kinds.Knows(kind)
}

// FindPodTemplate returns the pod template at the path of a pod set as a part of the component's
// template: an edit of it edits that.
func FindPodTemplate(template *unstructured.Unstructured, path string) (map[string]any, error) {
	return podtemplate.Find(template.Object, path)
}

// PodTemplate returns the pod template at the path of a pod set, such as
// template.spec.template. The path begins with the template of the component.
func PodTemplate(template *unstructured.Unstructured, path string) (corev1.PodTemplateSpec, error) {
	found, err := podtemplate.Find(template.Object, path)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	var decoded corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &decoded); err != nil {
		return corev1.PodTemplateSpec{}, fmt.Errorf("cannot decode the pod template %s: %w", path, err)
	}
	return decoded, nil
}

// Pods are those of one pod set.
type Pods struct {
	Count    int32
	Template corev1.PodTemplateSpec
}

// Pods are all pods of an AppWrapper, in the order of its pod sets.
func (d Decoded) Pods() ([]Pods, error) {
	var all []Pods
	for i, template := range d.Templates {
		if err := d.Errors[i]; err != nil {
			return nil, err
		}
		podSets, err := PodSets(d.AppWrapper.Spec.Components[i].DeclaredPodSets, template)
		if err != nil {
			return nil, err
		}
		for _, podSet := range podSets {
			pod, err := PodTemplate(template, podSet.Path)
			if err != nil {
				return nil, err
			}
			all = append(all, Pods{podSet.Count(), pod})
		}
	}
	return all, nil
}
