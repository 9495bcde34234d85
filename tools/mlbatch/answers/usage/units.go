// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// units are how much is requested of each resource, in thousandths of a device, a core, a GiB or a pod.
type units map[string]int64

// unitsOf are what all pods of an AppWrapper request.
func unitsOf(aw *v1beta2.AppWrapper) units {
	all := units{}
	decoded := admissionrules.Decode(aw)
	for i, component := range aw.Status.ComponentStatus {
		for _, podSet := range component.PodSets {
			var spec corev1.PodSpec
			if i < len(decoded.Templates) && decoded.Templates[i] != nil {
				if template, err := admissionrules.PodTemplate(decoded.Templates[i], podSet.Path); err == nil {
					spec = template.Spec
				}
			}
			all.add(spec, int64(podSet.Count()))
		}
	}
	return all
}

// add adds what so many pods request.
func (u units) add(spec corev1.PodSpec, pods int64) {
	for name, amount := range quota.Requests(&corev1.Pod{Spec: defaulted(spec)}) {
		u[string(name)] += pods * thousandths(name, amount)
	}
	u[string(corev1.ResourcePods)] += 1000 * pods
}

// counted are the units of one resource. If none is named, they are the devices; without devices the cores, and
// without these the pods. So every AppWrapper counts.
func (u units) counted(name string) units {
	devices := units{}
	for other, n := range u {
		if n > 0 && (name == "" && nodesigns.IsDevice(corev1.ResourceName(other)) || other == name) {
			devices[other] = n
		}
	}
	switch {
	case name != "" || len(devices) > 0:
		return devices
	case u[string(corev1.ResourceCPU)] > 0:
		return u.counted(string(corev1.ResourceCPU))
	}
	return u.counted(string(corev1.ResourcePods))
}

// thousandths of bytes are those of a GiB.
func thousandths(name corev1.ResourceName, amount resource.Quantity) int64 {
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return (amount.Value() >> 20) * 1000 >> 10
	}
	return amount.MilliValue()
}

// defaulted are pods as the API server stores them: what has a limit requests as much.
func defaulted(spec corev1.PodSpec) corev1.PodSpec {
	spec.Containers, spec.InitContainers = requesting(spec.Containers), requesting(spec.InitContainers)
	if spec.Resources != nil {
		whole := *spec.Resources
		whole.Requests = orLimits(whole)
		spec.Resources = &whole
	}
	return spec
}

func requesting(containers []corev1.Container) []corev1.Container {
	all := make([]corev1.Container, len(containers))
	for i, c := range containers {
		all[i] = c
		all[i].Resources.Requests = orLimits(c.Resources)
	}
	return all
}

func orLimits(r corev1.ResourceRequirements) corev1.ResourceList {
	requests := corev1.ResourceList{}
	maps.Copy(requests, r.Limits)
	maps.Copy(requests, r.Requests)
	return requests
}

// Hours are those of one device, core, GiB or pod. They are stored as thousandths of it times seconds, so that
// sums are exact.
type Hours int64

func hours(seconds, thousandths int64) Hours { return Hours(seconds * thousandths) }

func (h Hours) float() float64 { return float64(h) / 1000 / 3600 }

func (h Hours) String() string { return strconv.FormatFloat(h.float(), 'f', 2, 64) }

// MarshalJSON writes a number of hours, to a third of a second of one device.
func (h Hours) MarshalJSON() ([]byte, error) { return []byte(h.number()), nil }

func (h Hours) number() string { return strconv.FormatFloat(h.float(), 'f', 4, 64) }
