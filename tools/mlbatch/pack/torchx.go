// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
)

// What `torchx run --dryrun` prints before the application and before the request.
const (
	torchXApplication = "=== APPLICATION ==="
	torchXRequest     = "=== SCHEDULER REQUEST ==="
)

// Labels of TorchX's pods. It selects the pods of an application by the last one, if it is new enough.
const (
	torchXRole     = "torchx.pytorch.org/role-name"
	torchXReplica  = "torchx.pytorch.org/replica-id"
	torchXInstance = "app.kubernetes.io/instance"
)

// torchX converts what TorchX would have created for one application.
type torchX struct {
	conversion
	app      string
	replicas []replica
	// volcano would set variables in all containers.
	volcano bool
	// serves: there was a Service of the application, which objects writes anew.
	serves bool
}

// replica is one of a role. TorchX has a pod template for each.
type replica struct {
	// where it is in the request.
	where string
	// name is that of the role and the number, such as trainer-0.
	name string
	// retries are of this replica alone.
	retries  int64
	template map[string]any
}

// FromTorchX packs what `torchx run --dryrun` prints for Kubernetes. The file may have the request alone.
func FromTorchX(file string, dump []byte, options Options) Packed {
	t := &torchX{conversion: conversion{Options: options, file: file}}
	request, announced, reason := requestIn(string(dump))
	if reason != "" {
		return Packed{Refusals: []Refusal{{Reason: file + ": " + reason}}}
	}
	documents, err := manifests.Parse(file, []byte(request))
	if err != nil || len(documents) != 1 {
		reason = "its request is cut off, or not of TorchX's schedulers kubernetes and kubernetes_mcad"
		if err != nil {
			reason += ": " + err.Error()
		}
		return Packed{Refusals: []Refusal{{Reason: file + ": " + reason}}}
	}
	object := documents[0].Object
	t.app = object.GetName()
	pack := t.fromMCAD
	switch gvk := object.GroupVersionKind(); {
	case gvk.Group == "batch.volcano.sh" && gvk.Kind == "Job":
		pack = t.fromVolcano
	case !isMCAD(object):
		t.refuse(object, "it is %s: --from-torchx takes what TorchX prints for its schedulers kubernetes and kubernetes_mcad", gvk.GroupVersion())
		return Packed{Refusals: t.refusals}
	}
	if packed := pack(object, announced); len(t.refusals) == 0 {
		return packed
	}
	return Packed{Refusals: t.refusals}
}

var numberOfReplicas = regexp.MustCompile(`'num_replicas': (\d+)`)

// requestIn returns the request in what TorchX printed, and how many replicas the application before it has.
func requestIn(dump string) (request string, replicas int, reason string) {
	application, request, found := strings.Cut("\n"+dump, "\n"+torchXRequest+"\n")
	switch {
	case strings.TrimSpace(dump) == "":
		return "", 0, "it is empty: TorchX prints its request as a log, so set LOGLEVEL=INFO and redirect 2>&1"
	case !found && strings.Contains(dump, torchXApplication):
		return "", 0, "it has no line " + torchXRequest + ": it is cut off"
	case !found:
		return dump, 0, ""
	}
	for _, role := range numberOfReplicas.FindAllStringSubmatch(application, -1) {
		n, _ := strconv.Atoi(role[1]) // digits
		replicas += n
	}
	return request, replicas, ""
}

// check refuses what lacks something that TorchX always writes.
func (t *torchX) check(request *unstructured.Unstructured, announced int) {
	switch n := len(t.replicas); {
	case n == 0:
		t.refuse(request, "it has no replica of TorchX: it is cut off, or another program wrote it")
	case announced > 0 && n != announced:
		t.refuse(request, "it has %d replicas, and its application %d: it is cut off", n, announced)
	}
	for _, r := range t.replicas {
		if missing := missingIn(r.template); missing != "" {
			t.refuse(request, "%s has %s: it is cut off", r.where, missing)
		}
	}
}

// missingIn says what a template lacks. TorchX sorts fields, so volumes come last.
func missingIn(template map[string]any) string {
	var pod corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod); err != nil {
		return "a pod that cannot be read (" + err.Error() + ")"
	}
	if len(pod.Spec.Containers) == 0 {
		return "no containers"
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, container := range pod.Spec.Containers {
		if container.Name == "" || container.Image == "" {
			return "a container without a name or an image"
		}
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				return "no volume " + mount.Name
			}
		}
	}
	if pod.Spec.RestartPolicy == "" {
		return "no restartPolicy"
	}
	return ""
}

// alike are replicas that differ in their number only. One Job makes the pods of all.
type alike []replica

// grouped joins replicas that follow each other.
func (t *torchX) grouped() (groups []alike) {
	last := ""
	for _, r := range t.replicas {
		key := fmt.Sprint(r.retries, patternOf(r.template))
		if key != last {
			groups = append(groups, nil)
		}
		last = key
		groups[len(groups)-1] = append(groups[len(groups)-1], r)
	}
	return groups
}

// patternOf is the text of a template without what is different in each replica.
func patternOf(template map[string]any) string {
	pod := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(template)}
	withoutPlace(pod)
	removeKeys(pod, "labels", func(key string) bool { return key == torchXReplica })
	for _, container := range containersOf(pod.Object) {
		delete(container, "name")
	}
	text, _ := json.Marshal(pod.Object) // it comes from JSON
	return string(text)
}

// withoutPlace removes what says where a pod is, and who places it.
func withoutPlace(pod *unstructured.Unstructured) {
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"spec", "hostname"}, {"spec", "subdomain"}, {"spec", "schedulerName"},
	} {
		unstructured.RemoveNestedField(pod.Object, path...)
	}
	removeKeys(pod, "labels", func(key string) bool { return key == oldPodGroupLabel })
}

func containersOf(pod map[string]any) (containers []map[string]any) {
	spec, _ := pod["spec"].(map[string]any)
	list, _ := spec["containers"].([]any)
	for i := range list {
		if container, is := list[i].(map[string]any); is {
			containers = append(containers, container)
		}
	}
	return containers
}

// objects are a Job for each group, and a Service with which their pods find each other.
func (t *torchX) objects() []*unstructured.Unstructured {
	groups, hosts := t.grouped(), map[string]string{}
	for _, group := range groups {
		for i, r := range group {
			hosts[r.name] = fmt.Sprintf("%s-%d.%s", t.jobName(group), i, t.app)
		}
	}
	objects := []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": t.app},
		"spec": map[string]any{"clusterIP": "None", "publishNotReadyAddresses": true, "selector": map[string]any{torchXInstance: t.app}},
	}}}
	for _, group := range groups {
		objects = append(objects, t.job(group, hosts))
	}
	return objects
}

func (t *torchX) jobName(group alike) string { return t.app + "-" + group[0].name }

func (t *torchX) job(group alike, hosts map[string]string) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{Object: group[0].template}
	t.name(pod, hosts)
	withoutPlace(pod)
	labels := map[string]string{torchXInstance: t.app}
	for key, value := range pod.GetLabels() {
		if key != torchXReplica || len(group) == 1 {
			labels[key] = value
		}
	}
	pod.SetLabels(labels)
	spec, _ := pod.Object["spec"].(map[string]any)
	spec["subdomain"] = t.app
	pods := int64(len(group))
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": t.jobName(group)},
		"spec": map[string]any{"completionMode": "Indexed", "completions": pods, "parallelism": pods, "backoffLimit": int64(0), "template": pod.Object},
	}}
	if retries := group[0].retries; retries > 0 {
		unstructured.RemoveNestedField(job.Object, "spec", "backoffLimit")
		job.Object["spec"].(map[string]any)["backoffLimitPerIndex"] = retries
	}
	if host := fmt.Sprintf("%s-%d", job.GetName(), pods-1); len(host) > validation.DNS1123LabelMaxLength {
		t.refuse(job, "the host name %s has %d characters, and may have at most 63: give torchx a shorter --name", host, len(host))
	}
	return job
}

// name sets the variables with which TorchX's programs find the first replica, and each other.
func (t *torchX) name(pod *unstructured.Unstructured, hosts map[string]string) {
	text, _ := json.Marshal(pod.Object) // it comes from JSON
	for _, container := range containersOf(pod.Object) {
		env, _ := container["env"].([]any)
		for i := range env {
			variable, _ := env[i].(map[string]any)
			if name, _ := variable["name"].(string); strings.HasPrefix(name, "TORCHX_MCAD_") {
				variable["value"] = hosts[t.replicas[0].name]
			}
		}
		if !t.volcano {
			continue
		}
		for i, r := range t.replicas {
			name := "VC_" + strings.ToUpper(strings.ReplaceAll(r.name, "-", "_")) + "_HOSTS"
			if i == 0 || bytes.Contains(text, []byte(name)) {
				env = append(env, map[string]any{"name": name, "value": hosts[r.name]})
			}
		}
		container["env"] = env
	}
}
