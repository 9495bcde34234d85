// SPDX-License-Identifier: Apache-2.0

package work

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
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

// references are where a pod names a ConfigMap or a Secret, as the last two keys of the path.
var references = []string{
	"configMap.name", "configMapRef.name", "configMapKeyRef.name", "secretRef.name", "secretKeyRef.name", "secret.name", "secret.secretName", "imagePullSecrets.name",
}

// namingLabels have the name of a resource as their value.
var namingLabels = []string{
	"scheduling.x-k8s.io/pod-group", "training.kubeflow.org/job-name", "batch.kubernetes.io/job-name", "job-name", v1beta2.AppWrapperLabel,
}

// programs are keys of what is the program's own, and stays as it is: it may name a folder, a bucket or an experiment.
var programs = []string{"command", "args", "value", "data", "binaryData", "stringData"}

// renaming gives the resources of a copy names of their own, so that those of the older one may still be there.
type renaming struct {
	old, name string
	// names are new ones, by old ones.
	names map[string]string
	// ofPods is what the names of pods begin with.
	ofPods []string
}

// renamed returns components with new names, or false if others may know the names.
func renamed(components []v1beta2.AppWrapperComponent, old, name string) ([]v1beta2.AppWrapperComponent, bool) {
	r := renaming{old: old, name: name, names: map[string]string{old: name}}
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
			template.SetName(r.names[own])
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
	longest, known := copiable[template.GroupVersionKind().GroupKind().String()]
	next := r.next(own)
	if !known || len(next) > max(longest, len(own)) {
		return false
	}
	r.names[own] = next
	if longest == longestJob {
		r.ofPods = append(r.ofPods, own)
	}
	return true
}

// next is train-2-files for train-files if train-2 is the copy of train, and mine-2 for mine.
func (r *renaming) next(own string) string {
	if rest, begins := strings.CutPrefix(own, r.old); begins && (rest == "" || rest[0] == '-') {
		return r.name + rest
	}
	number := func(name string) string { return ofCopy.FindString(name) }
	return strings.TrimSuffix(own, number(r.old)) + number(r.name)
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

// replace replaces the references to other resources below a key.
func (r *renaming) replace(node any, key string) {
	switch node := node.(type) {
	case map[string]any:
		for name, value := range node {
			text, is := value.(string)
			if next := r.names[text]; is && next != "" && refers(key, name) {
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

// refers reports whether the value of a name below a key names a resource.
func refers(key, name string) bool {
	return slices.Contains(references, key+"."+name) || slices.Contains(namingLabels, name)
}
