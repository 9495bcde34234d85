// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"slices"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// wrongImages refuses names that a kubelet cannot parse, so that it never asks a registry.
func wrongImages(_ kinds.Kind, in located) field.ErrorList {
	spec := in.path.Child("spec")
	return append(wrongImagesOf(in.pod.Spec.InitContainers, spec.Child("initContainers")), wrongImagesOf(in.pod.Spec.Containers, spec.Child("containers"))...)
}

func wrongImagesOf(containers []corev1.Container, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i := range containers {
		image := containers[i].Image
		if image == "" {
			continue
		}
		if _, err := reference.ParseNormalizedNamed(image); err != nil {
			problems = append(problems, field.Invalid(path.Index(i).Child("image"), image, "no registry can have an image of this name: "+err.Error()))
		}
	}
	return problems
}

// missingContainer: the operator of a kind refuses pods without a container of its name.
func missingContainer(kind kinds.Kind, in located) field.ErrorList {
	if kind.GVK.Group == "ray.io" && in.pod.Spec.Containers != nil && len(in.pod.Spec.Containers) == 0 {
		return field.ErrorList{field.Required(in.path.Child("spec", "containers"), "each group of a Ray cluster needs a container: KubeRay looks at the first one")}
	}
	main := kind.MainContainer()
	if main == "" || slices.ContainsFunc(in.pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == main }) {
		return nil
	}
	return field.ErrorList{field.Required(in.path.Child("spec", "containers"),
		fmt.Sprintf("a container of a %s must have the name %s: its operator runs the program there, and refuses pods without it", kind.GVK.Kind, main))}
}
