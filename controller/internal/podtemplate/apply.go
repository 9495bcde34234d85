// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Edit is what is done to one pod template before its component is created.
type Edit struct {
	// Info is what Kueue wants added; zero if nothing.
	Info v1beta2.AppWrapperPodSetInfo
	// Labels are ours, added like those of Info.
	Labels map[string]string
	// SchedulerName is set if it is not empty and the template names none.
	SchedulerName string
	// LastWords: if a container fails without a message, the end of its log is the message, unless the template says
	// where messages come from.
	LastWords bool
	// Avoid says which nodes to keep away from.
	Avoid Avoidance
	// AvoidNodes are the names of more nodes to keep away from. A pod that names its node, or gets
	// it from Kueue, cannot.
	AvoidNodes []string
	// DislikeNodes are the names of nodes that are the last choice.
	DislikeNodes []string
}

// Labels name the AppWrapper and the component of a pod.
func Labels(appWrapper string, component int) map[string]string {
	return map[string]string{
		v1beta2.AppWrapperLabel:          appWrapper,
		v1beta2.AppWrapperComponentLabel: strconv.Itoa(component),
	}
}

// Apply edits a pod template, as Find returned it, in place. It fails if the template, Info
// and Labels have different values for one label, annotation or node selector: none of them
// may be overridden.
func Apply(template map[string]any, e Edit) error {
	steps := []func(map[string]any, Edit) error{
		addAnnotations,
		addLabels,
		addNodeSelector,
		addTolerations,
		addSchedulingGates,
		setSchedulerName,
		keepLastWords,
		avoidNodes,
	}
	for _, step := range steps {
		if err := step(template, e); err != nil {
			return err
		}
	}
	return nil
}

func addAnnotations(template map[string]any, e Edit) error {
	return merge(template, "annotation", e.Info.Annotations, "metadata", "annotations")
}

func addLabels(template map[string]any, e Edit) error {
	if err := merge(template, "label", e.Info.Labels, "metadata", "labels"); err != nil {
		return err
	}
	return merge(template, "label", e.Labels, "metadata", "labels")
}

func addNodeSelector(template map[string]any, e Edit) error {
	return merge(template, "node selector", e.Info.NodeSelector, "spec", "nodeSelector")
}

func merge(template map[string]any, what string, added map[string]string, parent, field string) error {
	if len(added) == 0 {
		return nil
	}
	holder, err := child(template, parent)
	if err != nil {
		return err
	}
	existing, err := child(holder, field)
	if err != nil {
		return fmt.Errorf("%s: %w", parent, err)
	}
	for _, key := range slices.Sorted(maps.Keys(added)) {
		if old, ok := existing[key]; ok && old != added[key] {
			return fmt.Errorf("%s %q is %q in the pod template and cannot become %q", what, key, fmt.Sprint(old), added[key])
		}
		existing[key] = added[key]
	}
	return nil
}

// child returns the object in that field, and creates it if absent.
func child(object map[string]any, field string) (map[string]any, error) {
	value, found := object[field]
	if !found || value == nil {
		made := map[string]any{}
		object[field] = made
		return made, nil
	}
	held, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", field)
	}
	return held, nil
}

// addTolerations appends without looking for duplicates, which do no harm.
func addTolerations(template map[string]any, e Edit) error {
	added := make([]any, 0, len(e.Info.Tolerations))
	for i := range e.Info.Tolerations {
		toleration, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&e.Info.Tolerations[i])
		if err != nil {
			return fmt.Errorf("cannot encode a toleration: %w", err)
		}
		added = append(added, toleration)
	}
	return extend(template, "tolerations", added)
}

func addSchedulingGates(template map[string]any, e Edit) error {
	spec, err := child(template, "spec")
	if err != nil {
		return err
	}
	var added []any
	for _, gate := range e.Info.SchedulingGates {
		if !hasGate(spec["schedulingGates"], gate) {
			added = append(added, map[string]any{"name": gate.Name})
		}
	}
	return extend(template, "schedulingGates", added)
}

func hasGate(gates any, gate corev1.PodSchedulingGate) bool {
	list, _ := gates.([]any)
	for _, g := range list {
		if g, ok := g.(map[string]any); ok && g["name"] == gate.Name {
			return true
		}
	}
	return false
}

func extend(template map[string]any, field string, added []any) error {
	if len(added) == 0 {
		return nil
	}
	spec, err := child(template, "spec")
	if err != nil {
		return err
	}
	existing, ok := spec[field].([]any)
	if !ok && spec[field] != nil {
		return fmt.Errorf("spec: %s is not a list", field)
	}
	spec[field] = append(existing, added...)
	return nil
}

func setSchedulerName(template map[string]any, e Edit) error {
	if e.SchedulerName == "" {
		return nil
	}
	spec, err := child(template, "spec")
	if err != nil {
		return err
	}
	if name, _ := spec["schedulerName"].(string); name == "" {
		spec["schedulerName"] = e.SchedulerName
	}
	return nil
}

func keepLastWords(template map[string]any, e Edit) error {
	if !e.LastWords {
		return nil
	}
	spec, err := child(template, "spec")
	if err != nil {
		return err
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _ := spec[field].([]any)
		for _, c := range containers {
			if container, ok := c.(map[string]any); ok && container["terminationMessagePolicy"] == nil {
				container["terminationMessagePolicy"] = string(corev1.TerminationMessageFallbackToLogsOnError)
			}
		}
	}
	return nil
}
