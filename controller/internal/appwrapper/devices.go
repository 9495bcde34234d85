// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// devicesOf are the devices whose health matters, so they count as surplus wherever they are.
// Others count for an AppWrapper that asks for some: add-ons of the cluster inject devices.
func devicesOf(c config.Autopilot) []string {
	var devices []string
	for name := range c.ResourceTaints {
		if nodehealth.IsDevice(corev1.ResourceName(name)) {
			devices = append(devices, name)
		}
	}
	return devices
}

// countedDevices are the devices that count for an AppWrapper, and how many its pod sets declare.
func (r *Reconciler) countedDevices(aw *v1beta2.AppWrapper, templates []*unstructured.Unstructured) map[string]int64 {
	counted := declaredDevices(aw, templates)
	for _, name := range r.devices {
		counted[name] += 0
	}
	return counted
}

// declaredDevicesAnnotation is where a cached AppWrapper has what its templates say about
// devices. Nobody else can set it: the cache drops what was stored.
const declaredDevicesAnnotation = v1beta2.AnnotationPrefix + "declared-devices"

// declaredDevices reads whole templates, or what slimAppWrapper has left of them.
func declaredDevices(aw *v1beta2.AppWrapper, templates []*unstructured.Unstructured) map[string]int64 {
	declared := map[string]int64{}
	if kept, ok := aw.Annotations[declaredDevicesAnnotation]; ok && json.Unmarshal([]byte(kept), &declared) == nil {
		return declared
	}
	for i, component := range aw.Status.ComponentStatus {
		if i >= len(templates) || templates[i] == nil {
			continue
		}
		for _, podSet := range component.PodSets {
			template, err := admissionrules.PodTemplate(templates[i], podSet.Path)
			if err != nil {
				continue // slim, or its problem is reported elsewhere
			}
			for name, n := range requestedDevices(&template.Spec) {
				declared[string(name)] += n * int64(podSet.Count())
			}
		}
	}
	return declared
}

// undercountedAnnotation is on a cached AppWrapper that an older release counted with fewer pods
// than it gets. Nobody else can set it: the cache drops what was stored.
const undercountedAnnotation = v1beta2.AnnotationPrefix + "undercounted"

// undercounted reads whole templates, or what slimAppWrapper has noted.
func undercounted(decoded admissionrules.Decoded) bool {
	return decoded.AppWrapper.Annotations[undercountedAnnotation] != "" || decoded.Undercounted()
}

// devicesOfPod are how many of each device a pod asks for.
func devicesOfPod(pod *corev1.Pod) map[string]int64 {
	requested := requestedDevices(&pod.Spec)
	if len(requested) == 0 {
		return nil
	}
	devices := make(map[string]int64, len(requested))
	for name, n := range requested {
		devices[string(name)] = n
	}
	return devices
}

// requestedDevices reads a whole spec, or that of a slim pod, which has devices as limits of the
// pod. The API server allows no such limits.
func requestedDevices(spec *corev1.PodSpec) map[corev1.ResourceName]int64 {
	requested := corev1.ResourceList{}
	if slices.ContainsFunc(spec.InitContainers, asksForDevices) || slices.ContainsFunc(spec.Containers, asksForDevices) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: devicesOnly(spec.InitContainers), Containers: devicesOnly(spec.Containers)}}
		requested = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	} else if spec.Resources != nil {
		requested = spec.Resources.Limits
	}
	devices := map[corev1.ResourceName]int64{}
	for name, quantity := range requested {
		if n := quantity.Value(); n > 0 && nodehealth.IsDevice(name) {
			devices[name] = n
		}
	}
	return devices
}

func asksForDevices(c corev1.Container) bool {
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name := range list {
			if nodehealth.IsDevice(name) {
				return true
			}
		}
	}
	return false
}

// devicesOnly leaves of containers what they request of devices. A limit is a request, as in the
// API server.
func devicesOnly(containers []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, len(containers))
	for i, c := range containers {
		requests := corev1.ResourceList{}
		maps.Copy(requests, c.Resources.Limits)
		maps.Copy(requests, c.Resources.Requests)
		maps.DeleteFunc(requests, func(name corev1.ResourceName, _ resource.Quantity) bool { return !nodehealth.IsDevice(name) })
		slim[i] = corev1.Container{RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: requests}}
	}
	return slim
}

// share returns the one copy of the limits that all pods share that use the same.
func (in *interner) share(used map[corev1.ResourceName]int64) *corev1.ResourceRequirements {
	key := fmt.Sprint(used) // which sorts by name
	in.Lock()
	defer in.Unlock()
	if known, ok := in.requirements[key]; ok {
		return known
	}
	limits := &corev1.ResourceRequirements{Limits: corev1.ResourceList{}}
	for name, n := range used {
		limits.Limits[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	if len(in.requirements) < mostInterned {
		in.requirements[key] = limits
	}
	return limits
}
