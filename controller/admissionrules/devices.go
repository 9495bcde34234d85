// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const instead = "request the extended resource that stands for the devices, such as nvidia.com/gpu"

// validateDevices refuses devices that Kueue does not count in an AppWrapper: it sees no claims there, and it does not
// know the names that Kubernetes gives to all classes of devices.
func (d Decoded) validateDevices(i int) field.ErrorList {
	var problems field.ErrorList
	for _, pod := range d.podTemplates(i) {
		spec := pod.path.Child("spec")
		if claimsDevices(&pod.pod.Spec) {
			problems = append(problems, field.Forbidden(spec.Child("resourceClaims"), "Kueue counts no devices of claims in an AppWrapper: "+instead))
		}
		if name := namesClass(&pod.pod.Spec); name != "" {
			problems = append(problems, field.Forbidden(spec, string(name)+": Kueue does not know which devices that is: "+instead))
		}
	}
	return problems
}

func claimsDevices(spec *corev1.PodSpec) bool {
	claims := len(spec.ResourceClaims) > 0 || spec.Resources != nil && len(spec.Resources.Claims) > 0
	eachContainer(spec, func(r *corev1.ResourceRequirements) { claims = claims || len(r.Claims) > 0 })
	return claims
}

// namesClass is the resource by which a container requests devices of a class, or "".
func namesClass(spec *corev1.PodSpec) (found corev1.ResourceName) {
	look := func(r *corev1.ResourceRequirements) {
		for _, amounts := range []corev1.ResourceList{r.Requests, r.Limits} {
			for name := range amounts {
				if strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix) && (found == "" || name < found) {
					found = name
				}
			}
		}
	}
	eachContainer(spec, look)
	if spec.Resources != nil {
		look(spec.Resources)
	}
	return found
}
