// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
)

// serverSet are the fields of metadata that only an API server sets.
var serverSet = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

// recorded are annotations in which programs note what they did to an object.
var recorded = []string{"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"}

// exported removes what a cluster added to objects of some kinds. In a new object it would be
// refused, or would lead to what belongs to the old one.
var exported = map[schema.GroupKind]func(object *unstructured.Unstructured){
	{Kind: "Pod"}:                   exportedPod,
	{Kind: "Service"}:               exportedService,
	{Kind: "PersistentVolumeClaim"}: exportedClaim,
	{Group: "batch", Kind: "Job"}:   exportedJob,
}

// withoutState is a copy of the object as its author wrote it: what `kubectl get -o yaml` prints has more.
func withoutState(object *unstructured.Unstructured) *unstructured.Unstructured {
	clean := object.DeepCopy()
	if clean.GetUID() != "" {
		if remove := exported[clean.GroupVersionKind().GroupKind()]; remove != nil {
			remove(clean)
		}
		fromPods(clean)
	}
	delete(clean.Object, "status")
	for _, field := range serverSet {
		unstructured.RemoveNestedField(clean.Object, "metadata", field)
	}
	if clean.GetName() != "" {
		clean.SetGenerateName("")
	}
	for _, name := range recorded {
		removeKeys(clean, "annotations", func(key string) bool { return key == name })
	}
	removeNullTimes(clean.Object)
	return clean
}

// removeNullTimes removes the creationTimestamp of pod templates, which is always null.
func removeNullTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		metadata, _ := v["metadata"].(map[string]any)
		if created, set := metadata["creationTimestamp"]; set && created == nil {
			delete(metadata, "creationTimestamp")
		}
		for _, field := range v {
			removeNullTimes(field)
		}
	case []any:
		for _, item := range v {
			removeNullTimes(item)
		}
	}
}

// removeKeys removes labels or annotations, and the field if none is left.
func removeKeys(object *unstructured.Unstructured, what string, remove func(string) bool, parents ...string) {
	path := slices.Concat(parents, []string{"metadata", what})
	keys, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	values, is := keys.(map[string]any)
	if !found || err != nil || !is {
		return
	}
	before := len(values)
	for key := range values {
		if remove(key) {
			delete(values, key)
		}
	}
	if len(values) == 0 && before > 0 {
		unstructured.RemoveNestedField(object.Object, path...)
	}
}

// exportedPod removes the node, what the API server has computed from the PriorityClass, and the volume with the
// token of the ServiceAccount.
func exportedPod(pod *unstructured.Unstructured) {
	spec, _ := pod.Object["spec"].(map[string]any)
	for _, field := range []string{"nodeName", "priority", "preemptionPolicy"} {
		delete(spec, field)
	}
	removeNamed(spec, "volumes", tokenVolume)
	for _, containers := range []string{"initContainers", "containers"} {
		list, _ := spec[containers].([]any)
		for i := range list {
			container, _ := list[i].(map[string]any)
			removeNamed(container, "volumeMounts", tokenVolume)
		}
	}
}

// tokenVolume is the beginning of the name of a volume that the API server adds to each pod.
const tokenVolume = "kube-api-access-"

// gatesOfKueue is the beginning of their names.
const gatesOfKueue = "kueue.x-k8s.io/"

// removeNamed removes the items whose name begins so, and the list if none is left.
func removeNamed(from map[string]any, list, prefix string) {
	items, there := from[list].([]any)
	if !there {
		return
	}
	items = slices.DeleteFunc(items, func(item any) bool {
		object, _ := item.(map[string]any)
		name, _ := object["name"].(string)
		return strings.HasPrefix(name, prefix)
	})
	if from[list] = items; len(items) == 0 {
		delete(from, list)
	}
}

// fromPods removes the default scheduler, which the API server fills in where nobody has chosen one and which knows no
// PodGroups, and the gates that Kueue has closed: it opens none in what is wrapped.
func fromPods(object *unstructured.Unstructured) {
	podSets, err := admissionrules.PodSets(nil, object)
	if err != nil {
		return // said later
	}
	for _, podSet := range podSets {
		template, err := admissionrules.FindPodTemplate(object, podSet.Path)
		spec, is := template["spec"].(map[string]any)
		if err != nil || !is {
			continue
		}
		if spec["schedulerName"] == corev1.DefaultSchedulerName {
			delete(spec, "schedulerName")
		}
		removeNamed(spec, "schedulingGates", gatesOfKueue)
	}
}

func exportedService(service *unstructured.Unstructured) {
	if address, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP"); address == "None" {
		return
	}
	unstructured.RemoveNestedField(service.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(service.Object, "spec", "clusterIPs")
}

func exportedClaim(claim *unstructured.Unstructured) {
	unstructured.RemoveNestedField(claim.Object, "spec", "volumeName")
	removeKeys(claim, "annotations", func(key string) bool { return strings.HasPrefix(key, "pv.kubernetes.io/") })
	finalizers := slices.DeleteFunc(claim.GetFinalizers(), func(f string) bool { return f == "kubernetes.io/pvc-protection" })
	if claim.SetFinalizers(finalizers); len(finalizers) == 0 {
		claim.SetFinalizers(nil)
	}
}

// exportedJob removes what the API server generates from the Job's uid.
func exportedJob(job *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(job.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job.Object, "spec", "selector")
	generated := func(key string) bool {
		name := strings.TrimPrefix(key, "batch.kubernetes.io/")
		return name == "controller-uid" || name == "job-name"
	}
	removeKeys(job, "labels", generated)
	removeKeys(job, "labels", generated, "spec", "template")
}
