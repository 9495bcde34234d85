// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
)

// podGroupLabel names the PodGroup of a pod.
const podGroupLabel = "scheduling.x-k8s.io/pod-group"

// setPriorities gives all pods the priority that the author chose.
func (p *packer) setPriorities() {
	if p.Priority != "" && len(p.refusals) == 0 {
		p.setInPods("spec", "priorityClassName", p.Priority, "--priority")
	}
}

// group adds a PodGroup of all pods, before the objects that make them.
func (p *packer) group() {
	if !p.PodGroup || len(p.refusals) > 0 {
		return
	}
	pods, podSets := 0, 0
	for _, part := range p.parts {
		pods, podSets = pods+part.count(), podSets+len(part.podSets)
		if part.Object.GetKind() == "PodGroup" {
			p.refuse(part, "a pod can be in one PodGroup only: leave out this one or --pod-group")
		}
		if why := late(part.Object); why != "" {
			p.refuse(part, "--pod-group would never start: %s", why)
		}
	}
	if podSets == 0 {
		return // there is nothing to do for which there could be a name
	}
	if pods == 0 {
		p.refuseAll("--pod-group: there are no pods, because all replicas are 0")
	}
	p.checkGroupedByOperator()
	gang := p.Name + gangSuffix
	p.setInPods("labels", podGroupLabel, gang, "--pod-group")
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind":       "PodGroup",
		"metadata":   map[string]any{"name": gang},
		"spec":       map[string]any{"minMember": int64(pods)},
	}}
	p.parts = append([]*part{{Document: manifests.Document{File: "--pod-group", Object: group}, template: group}}, p.parts...)
}

// trainingOperator has the kinds whose pods this platform's training operator moves to a PodGroup
// for each object.
const trainingOperator = "kubeflow.org/v1"

// checkGroupedByOperator refuses pods that would wait for those that leave their PodGroup.
func (p *packer) checkGroupedByOperator() {
	var own []*part
	others := false
	for _, part := range p.parts {
		if part.Object.GetAPIVersion() == trainingOperator {
			own = append(own, part)
		} else if len(part.podSets) > 0 {
			others = true
		}
	}
	for _, part := range own {
		if others {
			p.refuse(part, "--pod-group would never start: the training operator groups these pods by themselves: leave out --pod-group, or pack this object alone")
			continue
		}
		p.notes = append(p.notes, fmt.Sprintf("%s: %s/%s: --pod-group is only for training operators without gang scheduling: "+
			"this platform's groups these pods anyway", part.File, part.Object.GetKind(), nameOf(part.Object)))
	}
}

// setInPods sets a field of the spec or a label of all pod templates. It refuses to change one.
func (p *packer) setInPods(parent, field, value, flag string) {
	path := []string{parent, field}
	if parent == "labels" {
		path = []string{"metadata", parent, field}
	}
	for _, part := range p.parts {
		for _, s := range part.podSets {
			template, err := admissionrules.FindPodTemplate(part.template, s.Path)
			var found string
			if err == nil {
				found, _, err = unstructured.NestedString(template, path...)
			}
			if err == nil && found != "" && found != value {
				err = fmt.Errorf("%s has %s %s, and %s sets %s: remove one of them", s.Path, field, found, flag, value)
			}
			if err == nil {
				err = unstructured.SetNestedField(template, value, path...)
			}
			if err != nil {
				p.refuse(part, "%v", err)
			}
		}
	}
}

// ordered are settings with which some pods of an object begin only when others run. A PodGroup
// of all lets none begin before that.
var ordered = []struct {
	group, kind string
	late        func(object map[string]any) bool
	why         string
}{
	{"apps", "StatefulSet", inTurn, "its pods start one after the other: set spec.podManagementPolicy to Parallel"},
	{"leaderworkerset.x-k8s.io", "LeaderWorkerSet", has("LeaderReady", "spec", "startupPolicy"), "its workers start after their leader is ready: set spec.startupPolicy to LeaderCreated"},
	{"jobset.x-k8s.io", "JobSet", has("InOrder", "spec", "startupPolicy", "startupPolicyOrder"), "its Jobs start in order: set spec.startupPolicy.startupPolicyOrder to AnyOrder"},
	{"jobset.x-k8s.io", "JobSet", dependent, "some of its Jobs wait for others: remove dependsOn"},
	{"kubeflow.org", "MPIJob", has("WaitForWorkersReady", "spec", "launcherCreationPolicy"), "its launcher starts after its workers: set spec.launcherCreationPolicy to AtStartup"},
	{"ray.io", "RayJob", submitted, "its submitter starts after its cluster: leave out spec.submitterPodTemplate"},
}

// late says why some pods of an object begin after others.
func late(object *unstructured.Unstructured) string {
	for _, o := range ordered {
		gk := object.GroupVersionKind().GroupKind()
		if gk.Group == o.group && gk.Kind == o.kind && o.late(object.Object) {
			return o.why
		}
	}
	return ""
}

func has(value string, path ...string) func(map[string]any) bool {
	return func(object map[string]any) bool {
		found, _, _ := unstructured.NestedString(object, path...)
		return found == value
	}
}

func inTurn(object map[string]any) bool {
	replicas, set, _ := unstructured.NestedInt64(object, "spec", "replicas")
	return set && replicas > 1 && !has("Parallel", "spec", "podManagementPolicy")(object)
}

func dependent(object map[string]any) bool {
	jobs, _, _ := unstructured.NestedSlice(object, "spec", "replicatedJobs")
	for _, job := range jobs {
		fields, _ := job.(map[string]any)
		if others, _, _ := unstructured.NestedSlice(fields, "dependsOn"); len(others) > 0 {
			return true
		}
	}
	return false
}

func submitted(object map[string]any) bool {
	_, set, _ := unstructured.NestedMap(object, "spec", "submitterPodTemplate")
	return set
}
