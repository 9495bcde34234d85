// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const (
	ownPrefix   = "workload.codeflare.dev/"
	kueuePrefix = "kueue.x-k8s.io/"
	// topologyPrefix is that of keys with which pod templates ask for a topology.
	topologyPrefix = kueuePrefix + "podset-"
)

// harmless are Kueue's keys that a user sets on work. On what is wrapped they have no effect,
// or order the pods.
var harmless = []string{
	kueuePrefix + "priority-class",
	kueuePrefix + "max-exec-time-seconds",
	kueuePrefix + "job-min-parallelism",
	kueuePrefix + "job-completions-equal-parallelism",
	kueuePrefix + "pod-index-offset",
}

// mustBeEmpty are fields of metadata of templates, whose objects would get them.
var mustBeEmpty = []struct{ field, why string }{
	{"finalizers", "the AppWrapper would keep its quota until somebody removes them from each pod"},
	{"ownerReferences", "a pod belongs to the object that creates it"},
}

// validateMetadata judges all metadata in the template of component i, those of templates in
// it included.
func (d Decoded) validateMetadata(i int, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	top := path.Child("metadata").String()
	eachMetadata(d.Templates[i].Object, path, func(metadata map[string]any, at *field.Path) {
		for _, what := range []string{"labels", "annotations"} {
			problems = append(problems, d.validateKeys(i, metadata[what], at.Child(what))...)
		}
		if at.String() == top {
			return
		}
		for _, e := range mustBeEmpty {
			if list, _ := metadata[e.field].([]any); len(list) > 0 {
				problems = append(problems, field.Forbidden(at.Child(e.field), "must be empty: "+e.why))
			}
		}
	})
	return problems
}

// eachMetadata visits every object in a field metadata, and the groups of a Ray cluster: KubeRay
// writes their labels onto pods.
func eachMetadata(value any, path *field.Path, visit func(map[string]any, *field.Path)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := path.Child(key)
			if metadata, is := v[key].(map[string]any); is && (key == "metadata" || key == "headGroupSpec") {
				visit(metadata, at)
			}
			if groups, is := v[key].([]any); is && key == "workerGroupSpecs" {
				eachGroup(groups, at, visit)
			}
			eachMetadata(v[key], at, visit)
		}
	case []any:
		for i := range v {
			eachMetadata(v[i], path.Index(i), visit)
		}
	}
}

func eachGroup(groups []any, path *field.Path, visit func(map[string]any, *field.Path)) {
	for i := range groups {
		if group, is := groups[i].(map[string]any); is {
			visit(group, path.Index(i))
		}
	}
}

func (d Decoded) validateKeys(i int, keys any, path *field.Path) field.ErrorList {
	values, _ := keys.(map[string]any)
	var problems field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if why := d.reserved(i, key, fmt.Sprint(values[key])); why != "" {
			problems = append(problems, field.Forbidden(path.Key(key), why))
		}
	}
	return problems
}

// reserved says why component i may not have a label or annotation: with it, the component
// would count as other work, or as queued work of its own.
func (d Decoded) reserved(i int, key, value string) string {
	queue, queued := d.AppWrapper.Labels[v1beta2.QueueNameLabel]
	switch {
	case key == v1beta2.AppWrapperLabel && value == d.AppWrapper.Name, key == v1beta2.AppWrapperComponentLabel && value == strconv.Itoa(i):
		return ""
	case strings.HasPrefix(key, ownPrefix):
		return "leave it out: the controller says which AppWrapper an object belongs to"
	case !strings.HasPrefix(key, kueuePrefix), strings.HasPrefix(key, topologyPrefix), slices.Contains(harmless, key):
		return ""
	case key == v1beta2.QueueNameLabel && queued && value != queue:
		return fmt.Sprintf("leave it out: the queue is the AppWrapper's, %q", queue)
	case key == v1beta2.QueueNameLabel:
		return ""
	}
	return "leave it out: Kueue gives quota to the AppWrapper, and not to what it wraps"
}
