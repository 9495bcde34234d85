// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	names "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// The API server looks into the pod templates of its own kinds only. Those of others it stores, and refuses each pod
// that their operators make of them: the events of the operator say so, and the quota waits. So these rules refuse what
// it would refuse whatever an operator adds. They are fewer than its own, and the same for each known kind.

// badPods are rules for the spec of a pod of a known kind.
var badPods = []func(in located, path *field.Path) field.ErrorList{
	gated,
	wrongSelector,
	wrongHostName,
	wrongContainers,
	wrongVolumes,
}

func wrongPods(kind kinds.Kind, in located) field.ErrorList {
	if !kind.Known() {
		return nil // its operator may change all of this
	}
	var problems field.ErrorList
	for _, rule := range badPods {
		problems = append(problems, rule(in, in.path.Child("spec"))...)
	}
	return problems
}

// gated finds gates that Kueue alone opens. It does so for pods that have a Workload of their own: others keep them.
func gated(in located, path *field.Path) field.ErrorList {
	for i, gate := range in.pod.Spec.SchedulingGates {
		if strings.HasPrefix(gate.Name, "kueue.x-k8s.io/") {
			return field.ErrorList{field.Forbidden(path.Child("schedulingGates").Index(i),
				"leave it out: Kueue opens the gates that it has closed itself, and an AppWrapper's pods start when it has quota")}
		}
	}
	return nil
}

func wrongSelector(in located, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabels(in.pod.Spec.NodeSelector, path.Child("nodeSelector"))
}

func wrongHostName(in located, path *field.Path) field.ErrorList {
	return append(wrongLabel(in.pod.Spec.Hostname, path.Child("hostname")), wrongLabel(in.pod.Spec.Subdomain, path.Child("subdomain"))...)
}

// wrongLabel refuses what is no DNS label. That there is none, other rules judge.
func wrongLabel(name string, path *field.Path) field.ErrorList {
	if wrong := names.IsDNS1123Label(name); name != "" && len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(wrong, "; "))}
	}
	return nil
}

func wrongContainers(in located, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	seen := sets.New[string]()
	each := func(containers []corev1.Container, path *field.Path) {
		for i := range containers {
			problems = append(problems, wrongContainer(&containers[i], path.Index(i), seen)...)
		}
	}
	each(in.pod.Spec.InitContainers, path.Child("initContainers"))
	each(in.pod.Spec.Containers, path.Child("containers"))
	return problems
}

func wrongContainer(c *corev1.Container, path *field.Path, seen sets.Set[string]) field.ErrorList {
	problems := wrongLabel(c.Name, path.Child("name"))
	if c.Name != "" && seen.Has(c.Name) {
		problems = append(problems, field.Duplicate(path.Child("name"), c.Name))
	}
	seen.Insert(c.Name)
	for i := range c.Env {
		if wrong := names.IsRelaxedEnvVarName(c.Env[i].Name); len(wrong) > 0 {
			problems = append(problems, field.Invalid(path.Child("env").Index(i).Child("name"), c.Env[i].Name, strings.Join(wrong, "; ")))
		}
	}
	return append(problems, wrongAmounts(&c.Resources, path.Child("resources"))...)
}

// wrongAmounts refuses what no node can give: a part of a device, less than nothing, and more than the limit.
func wrongAmounts(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	problems := append(impossibleAmounts(r.Limits, path.Child("limits")), impossibleAmounts(r.Requests, path.Child("requests"))...)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		limit, limited := r.Limits[name]
		request := r.Requests[name]
		at := path.Child("requests").Key(string(name))
		switch {
		case !limited && isDevice(name):
			problems = append(problems, field.Required(path.Child("limits").Key(string(name)), fmt.Sprintf("must be the request, %s: devices are not shared", request.String())))
		case !limited:
		case request.Cmp(limit) > 0:
			problems = append(problems, field.Invalid(at, request.String(), fmt.Sprintf("must be at most the limit, %s", limit.String())))
		case isDevice(name) && request.Cmp(limit) != 0:
			problems = append(problems, field.Invalid(at, request.String(), fmt.Sprintf("must be the limit, %s: devices are not shared", limit.String())))
		}
	}
	return problems
}

func impossibleAmounts(amounts corev1.ResourceList, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		switch {
		case !isResource(name):
			problems = append(problems, field.Invalid(path.Key(string(name)), amount.String(), "is no resource of a container: devices have a domain, such as nvidia.com/gpu"))
		case amount.Sign() < 0:
			problems = append(problems, field.Invalid(path.Key(string(name)), amount.String(), "must not be negative"))
		case isDevice(name) && !isWhole(amount):
			problems = append(problems, field.Invalid(path.Key(string(name)), amount.String(), "must be a whole number: there is no part of a device"))
		}
	}
	return problems
}

// isResource: what is not among those of Kubernetes has a domain.
func isResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isDevice: Kubernetes calls these extended resources.
func isDevice(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func isWhole(amount resource.Quantity) bool { return amount.MilliValue()%1000 == 0 }

// wrongVolumes refuses two volumes of a name, and mounts of none that the template or the controller of its kind has.
func wrongVolumes(in located, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	known := sets.New[string]()
	for i := range in.pod.Spec.Volumes {
		at, name := path.Child("volumes").Index(i).Child("name"), in.pod.Spec.Volumes[i].Name
		problems = append(problems, wrongLabel(name, at)...)
		if known.Has(name) {
			problems = append(problems, field.Duplicate(at, name))
		}
		known.Insert(name)
	}
	known.Insert(in.addedVolumes...)
	each := func(containers []corev1.Container, path *field.Path) {
		for i := range containers {
			for j, mount := range containers[i].VolumeMounts {
				if !known.Has(mount.Name) {
					problems = append(problems, field.Invalid(path.Index(i).Child("volumeMounts").Index(j).Child("name"), mount.Name, "no volume has this name: add it to volumes, or leave out the mount"))
				}
			}
		}
	}
	each(in.pod.Spec.InitContainers, path.Child("initContainers"))
	each(in.pod.Spec.Containers, path.Child("containers"))
	return problems
}
