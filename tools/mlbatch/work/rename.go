// SPDX-License-Identifier: Apache-2.0

package work

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

const (
	// longestLabel is the most characters of a name that is a label's value.
	longestLabel = 63
	// longestJob leaves room for the names of a job's pods.
	longestJob = 50
)

// copiable are kinds whose names nobody has to know but the resources of the same AppWrapper. A Service, a JobSet or a
// Ray cluster has the name under which its pods are called, and a claim is what the user's programs count on.
var copiable = map[string]int{
	"Job.batch": longestJob, "PyTorchJob.kubeflow.org": longestJob, "Pod": longestJob,
	"PodGroup.scheduling.x-k8s.io": longestLabel, "ConfigMap": longestLabel, "Secret": longestLabel,
}

// references are where a pod names a resource, as the last two keys of the path, with the kind.
var references = map[string]string{
	"configMap.name": "ConfigMap", "configMapRef.name": "ConfigMap", "configMapKeyRef.name": "ConfigMap",
	"secretRef.name": "Secret", "secretKeyRef.name": "Secret", "secret.name": "Secret", "secret.secretName": "Secret", "imagePullSecrets.name": "Secret",
}

// namingLabels have the name of a resource of a kind as their value.
var namingLabels = map[string]string{
	"scheduling.x-k8s.io/pod-group": "PodGroup.scheduling.x-k8s.io", "training.kubeflow.org/job-name": "PyTorchJob.kubeflow.org",
	"batch.kubernetes.io/job-name": "Job.batch", "job-name": "Job.batch", v1beta2.AppWrapperLabel: v1beta2.AppWrapperKind,
}

// programs are keys of what is the program's own, and stays as it is: it may name a folder, a bucket or an experiment.
var programs = []string{"command", "args", "value", "data", "binaryData", "stringData"}

// renaming gives the resources of a copy names of their own, so that those of the older one may still be there.
type renaming struct {
	old, name string
	// numbers are the ends of both by which copies differ; that of the old one is empty if it is no copy.
	oldNumber, number string
	// names are new ones, by kind/old name. Others may have a resource of the same name and of another kind.
	names map[string]string
	// ofPods is what the names of pods begin with.
	ofPods []string
}

// renamed returns components of a copy with new names, or false if others may know the names.
func renamed(components []v1beta2.AppWrapperComponent, old *v1beta2.AppWrapper, name string) ([]v1beta2.AppWrapperComponent, bool) {
	r := renaming{old: old.Name, name: name, number: ofCopy.FindString(name), names: map[string]string{resource(v1beta2.AppWrapperKind, old.Name): name}}
	if number := ofCopy.FindString(old.Name); old.Name == old.Annotations[runs.RetryOf]+number {
		r.oldNumber = number
	}
	var templates []*unstructured.Unstructured
	for _, c := range components {
		template := &unstructured.Unstructured{}
		decoder := json.NewDecoder(bytes.NewReader(c.Template.Raw))
		decoder.UseNumber()
		if err := decoder.Decode(&template.Object); err != nil || !r.add(template) {
			return nil, false
		}
		templates = append(templates, template)
	}
	all := make([]v1beta2.AppWrapperComponent, 0, len(components))
	for i, template := range templates {
		if r.called(template.Object) {
			return nil, false
		}
		if own := template.GetName(); own != "" {
			template.SetName(r.names[resource(kindOf(template), own)])
		}
		r.replace(template.Object, "")
		raw, err := json.Marshal(template.Object)
		if err != nil {
			return nil, false
		}
		c := *components[i].DeepCopy()
		c.Template.Raw = raw
		all = append(all, c)
	}
	return all, true
}

// add chooses the new name of a resource. It returns false if there is none.
func (r *renaming) add(template *unstructured.Unstructured) bool {
	own := template.GetName()
	if own == "" {
		return template.GetGenerateName() != ""
	}
	kind := kindOf(template)
	longest, known := copiable[kind]
	next := r.next(own)
	if !known || len(next) > max(longest, len(own)) {
		return false
	}
	r.names[resource(kind, own)] = next
	if longest == longestJob {
		r.ofPods = append(r.ofPods, own)
	}
	return true
}

func kindOf(template *unstructured.Unstructured) string {
	return template.GroupVersionKind().GroupKind().String()
}

func resource(kind, name string) string { return kind + "/" + name }

// next is train-2-files for train-files if train-2 is the copy of train, and mine-2 for mine.
func (r *renaming) next(own string) string {
	if rest, begins := strings.CutPrefix(own, r.old); begins && (rest == "" || rest[0] == '-') {
		return r.name + rest
	}
	return strings.TrimSuffix(own, r.oldNumber) + r.number
}

var ofCopy = regexp.MustCompile(`-[0-9]+$`)

// called reports whether a program names a pod.
func (r *renaming) called(node any) bool {
	switch node := node.(type) {
	case map[string]any:
		for _, value := range node {
			if r.called(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(node, r.called)
	case string:
		return slices.ContainsFunc(r.ofPods, func(own string) bool {
			found, err := regexp.MatchString(`(^|//|[^a-z0-9./-])`+regexp.QuoteMeta(own)+`(-[a-z]+)?-[0-9]`, node)
			return found || err != nil
		})
	}
	return false
}

// replace replaces the references to resources of this AppWrapper below a key.
func (r *renaming) replace(node any, key string) {
	switch node := node.(type) {
	case map[string]any:
		for name, value := range node {
			text, is := value.(string)
			kind := cmp.Or(references[key+"."+name], namingLabels[name])
			if next := r.names[resource(kind, text)]; is && next != "" {
				node[name] = next
			} else if !slices.Contains(programs, name) {
				r.replace(value, name)
			}
		}
	case []any:
		for _, value := range node {
			r.replace(value, key)
		}
	}
}
