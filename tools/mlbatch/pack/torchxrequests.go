// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
)

// oldPodGroupLabel is what TorchX puts on pods for an older coscheduler.
const oldPodGroupLabel = "pod-group.scheduling.sigs.k8s.io"

// volcanoJob is a Job of Volcano, as far as there is a rule about its fields. See volcanoFields.
type volcanoJob struct {
	Spec struct {
		MaxRetry          int64          `json:"maxRetry"`
		MinAvailable      int64          `json:"minAvailable"`
		PriorityClassName string         `json:"priorityClassName"`
		Plugins           map[string]any `json:"plugins"`
		Queue             string         `json:"queue"`
		Tasks             []volcanoTask  `json:"tasks"`
	} `json:"spec"`
}

type volcanoTask struct {
	Name         string          `json:"name"`
	Replicas     int64           `json:"replicas"`
	MaxRetry     int64           `json:"maxRetry"`
	MinAvailable *int64          `json:"minAvailable"`
	Policies     []volcanoPolicy `json:"policies"`
	Template     map[string]any  `json:"template"`
}

type volcanoPolicy struct {
	Action string `json:"action"`
	Event  string `json:"event"`
}

// restarts are the policies with which TorchX lets Volcano retry an application.
var restarts = []volcanoPolicy{{"RestartJob", "PodEvicted"}, {"RestartJob", "PodFailed"}}

var volcanoFields = fields{
	"apiVersion": false, "kind": false, "metadata": false, "status": false,
	"spec": true, "spec.maxRetry": false, "spec.minAvailable": false, "spec.plugins": false, "spec.priorityClassName": false, "spec.queue": false,
	"spec.schedulerName": false, "spec.tasks": true, "spec.tasks[]": true, "spec.tasks[].maxRetry": false, "spec.tasks[].minAvailable": false,
	"spec.tasks[].name": false, "spec.tasks[].policies": false, "spec.tasks[].replicas": false, "spec.tasks[].template": false,
}

// fromVolcano packs a Job of Volcano. Volcano starts all its pods together.
func (t *torchX) fromVolcano(object *unstructured.Unstructured, announced int) Packed {
	t.volcano = true
	var job volcanoJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		t.refuse(object, "it cannot be read as a Job of Volcano: %v", err)
		return Packed{}
	}
	t.refuseOthers(object, job.Spec.Plugins)
	retried := false
	for i, task := range job.Spec.Tasks {
		retried = t.task(object, i, task) || retried
	}
	t.check(object, announced)
	if t.Queue == "" {
		t.note(object, "spec.queue %s is a queue of Volcano: choose one with --queue", job.Spec.Queue)
	}
	if len(t.refusals) > 0 {
		return Packed{}
	}
	retries := job.Spec.MaxRetry
	if !retried {
		retries = 0
	}
	t.Name, t.Namespace, t.Labels = cmp.Or(t.Name, t.app), cmp.Or(t.Namespace, object.GetNamespace()), object.GetLabels()
	t.Annotations = map[string]string{v1beta2.RetryLimitAnnotation: strconv.FormatInt(retries, 10)}
	t.Priority = cmp.Or(t.Priority, job.Spec.PriorityClassName)
	t.PodGroup = t.PodGroup || len(t.replicas) > 1
	for _, o := range t.objects() {
		t.wrapped = append(t.wrapped, manifests.Document{File: t.file, Object: o})
	}
	packed := Pack(t.wrapped, t.Options)
	packed.Notes = append(t.notes, packed.Notes...)
	return packed
}

// refuseOthers is about what Volcano knows and TorchX does not write.
func (t *torchX) refuseOthers(job *unstructured.Unstructured, plugins map[string]any) {
	paths := volcanoFields.without(job.Object, "", "")
	for _, plugin := range slices.Sorted(maps.Keys(plugins)) {
		if plugin != "svc" && plugin != "env" {
			paths = append(paths, "spec.plugins."+plugin)
		}
	}
	for _, path := range paths {
		t.refuse(job, "%s is not from TorchX, and nothing here would do the same: remove it", path)
	}
}

// task takes a replica of a task, and says whether its failure restarts all.
func (t *torchX) task(job *unstructured.Unstructured, i int, task volcanoTask) (restartsAll bool) {
	where := fmt.Sprintf("spec.tasks[%d]", i)
	if task.Name == "" || task.Replicas != 1 {
		t.refuse(job, "%s has the name %q and %d replicas: TorchX writes a task with a name for each replica", where, task.Name, task.Replicas)
	}
	for _, p := range task.Policies {
		if !slices.Contains(restarts, p) {
			t.refuse(job, "%s.policies has %s after %s: only RestartJob after PodEvicted and PodFailed is from TorchX", where, p.Action, p.Event)
		}
	}
	if task.MinAvailable != nil && *task.MinAvailable == 0 {
		t.note(job, "%s.minAvailable 0 is not taken over: all pods have to be ready", where)
	}
	r := replica{where: where, name: task.Name, template: task.Template}
	if len(task.Policies) == 0 {
		r.retries = task.MaxRetry
	}
	t.replicas = append(t.replicas, r)
	return len(task.Policies) > 0
}

// fromMCAD replaces the pods of an AppWrapper of MCAD by Jobs, and lets FromMCAD do the rest.
func (t *torchX) fromMCAD(object *unstructured.Unstructured, announced int) Packed {
	items, _, _ := unstructured.NestedSlice(object.Object, "spec", "resources", "GenericItems")
	rest := []any{}
	for i := range items {
		if !t.take(i, items[i]) {
			rest = append(rest, items[i])
		}
	}
	t.check(object, announced)
	if !t.serves {
		t.refuse(object, "it has no Service %s, which TorchX writes last: it is cut off", t.app)
	}
	if len(t.refusals) > 0 {
		return Packed{}
	}
	for _, o := range t.objects() {
		rest = append(rest, map[string]any{"generictemplate": o.Object})
	}
	converted := object.DeepCopy()
	if err := unstructured.SetNestedSlice(converted.Object, rest, "spec", "resources", "GenericItems"); err != nil {
		t.refuse(object, "its pods cannot be replaced: %v", err)
	}
	return FromMCAD([]manifests.Document{{File: t.file, Object: converted}}, t.Options)
}

// take takes a pod of a role, or what is written anew. The PodGroups of roles become one of all pods.
func (t *torchX) take(i int, item any) bool {
	fields, _ := item.(map[string]any)
	template, _ := fields["generictemplate"].(map[string]any)
	object := &unstructured.Unstructured{Object: template}
	role := object.GetLabels()[torchXRole]
	switch kind := object.GetKind(); {
	case kind == "PodGroup":
		t.PodGroup = true
	case kind == "Service" && object.GetName() == t.app:
		t.serves = true
	case kind == "Pod" && role != "":
		name := role + "-" + object.GetLabels()[torchXReplica]
		t.replicas = append(t.replicas, replica{where: fmt.Sprintf("spec.resources.GenericItems[%d]", i), name: name, template: template})
	default:
		return false
	}
	return true
}
