// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

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
