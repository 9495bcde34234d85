// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
)

// mcad is an AppWrapper of MCAD, as far as there is a rule about its fields. See mcadFields.
type mcad struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Priority   float64 `json:"priority"`
		Scheduling struct {
			MinAvailable int               `json:"minAvailable"`
			NodeSelector map[string]string `json:"nodeSelector"`
			Requeuing    struct {
				TimeInSeconds      int `json:"timeInSeconds"`
				PauseTimeInSeconds int `json:"pauseTimeInSeconds"`
				MaxNumRequeuings   int `json:"maxNumRequeuings"`
			} `json:"requeuing"`
			DispatchDuration struct {
				Limit int `json:"limit"`
			} `json:"dispatchDuration"`
		} `json:"schedulingSpec"`
		Resources struct {
			Items        []any      `json:"Items"`
			GenericItems []mcadItem `json:"GenericItems"`
		} `json:"resources"`
	} `json:"spec"`
}

type mcadItem struct {
	Replicas           int            `json:"replicas"`
	CompletionStatus   string         `json:"completionstatus"`
	Template           map[string]any `json:"generictemplate"`
	CustomPodResources []struct {
		Replicas int32 `json:"replicas"`
	} `json:"custompodresources"`
}

// mcadGroups are those that MCAD's AppWrappers had, one after the other.
var mcadGroups = []string{"workload.codeflare.dev", "mcad.ibm.com"}

func isMCAD(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return slices.Contains(mcadGroups, gvk.Group) && gvk.Version == "v1beta1" && gvk.Kind == v1beta2.AppWrapperKind
}

// conversion of one AppWrapper.
type conversion struct {
	Options
	file     string
	old      mcad
	wrapped  []manifests.Document
	notes    []string
	refusals []Refusal
}

// FromMCAD packs what an AppWrapper of MCAD wraps. Its notes name what is not carried over.
func FromMCAD(documents []manifests.Document, options Options) Packed {
	if len(documents) != 1 || !isMCAD(documents[0].Object) {
		return Packed{Refusals: []Refusal{{Reason: "--from-mcad takes one AppWrapper of v1beta1, and nothing else: convert them one after the other"}}}
	}
	object := documents[0].Object
	c := conversion{Options: options, file: documents[0].File}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c.old); err != nil {
		c.refuse(object, "it cannot be read as an AppWrapper of MCAD: %v", err)
		return Packed{Refusals: c.refusals}
	}
	c.items(object)
	c.settings(object)
	for _, path := range mcadFields.without(object.Object, "", "") {
		c.note(object, "%s is not taken over", path)
	}
	if len(c.refusals) > 0 {
		return Packed{Refusals: c.refusals}
	}
	packed := Pack(c.wrapped, c.Options)
	packed.Notes = append(c.notes, packed.Notes...)
	return packed
}

func (c *conversion) refuse(about *unstructured.Unstructured, format string, args ...any) {
	c.refusals = append(c.refusals, Refusal{c.file, about.GetKind(), nameOf(about), fmt.Sprintf(format, args...)})
}

func (c *conversion) note(about *unstructured.Unstructured, format string, args ...any) {
	c.notes = append(c.notes, Refusal{c.file, about.GetKind(), nameOf(about), fmt.Sprintf(format, args...)}.String())
}

// items converts the wrapped objects of an AppWrapper.
func (c *conversion) items(aw *unstructured.Unstructured) {
	if len(c.old.Spec.Resources.Items) > 0 {
		c.refuse(aw, "spec.resources.Items has objects: only GenericItems are taken over, move them there")
	}
	all := c.old.Spec.Resources.GenericItems
	decides := slices.ContainsFunc(all, func(i mcadItem) bool { return i.CompletionStatus != "" })
	for n, item := range all {
		object := &unstructured.Unstructured{Object: item.Template}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			c.refuse(aw, "spec.resources.GenericItems[%d] has no generictemplate with apiVersion and kind", n)
			continue
		}
		c.wrapped = append(c.wrapped, manifests.Document{File: c.file, Object: object})
		if item.Replicas > 1 {
			c.note(object, "replicas %d is not taken over: the object itself says how many pods it makes", item.Replicas)
		}
		if decides && item.CompletionStatus == "" && len(templatesIn(object.Object, "")) > 0 {
			c.note(object, "without completionstatus, MCAD did not wait for its end; now the AppWrapper succeeds when its pods have, too")
		}
		if admissionrules.Known(object.GroupVersionKind().GroupKind()) {
			c.known(item, object)
		} else {
			c.unknown(item, object)
		}
	}
}

// known is about kinds that say how many pods they make, what these request, and when they have ended.
func (c *conversion) known(item mcadItem, object *unstructured.Unstructured) {
	if len(item.CustomPodResources) > 0 {
		c.note(object, "custompodresources is not taken over: what its pod templates request counts")
	}
}

// unknown declares the pods of a kind that MLBatch does not know, if its templates are those that MCAD
// was told of.
func (c *conversion) unknown(item mcadItem, object *unstructured.Unstructured) {
	paths := templatesIn(object.Object, "")
	said := slices.ContainsFunc(c.PodSets, func(s PodSet) bool { return s.Kind == object.GetKind() && s.Name == nameOf(object) })
	pods := int32(0)
	for _, r := range item.CustomPodResources {
		pods += r.Replicas
	}
	if pods > 0 && len(paths) == 0 && !said {
		c.refuse(object, "custompodresources has %d pods, but there is no pod template in the object: nobody would count them", pods)
	}
	if item.CompletionStatus != "" {
		c.note(object, "completionstatus %s is not taken over: it has succeeded when all its pods have", item.CompletionStatus)
	}
	if said || len(paths) != len(item.CustomPodResources) {
		return
	}
	for n, path := range paths {
		podSet := PodSet{Kind: object.GetKind(), Name: nameOf(object), Path: path, Replicas: item.CustomPodResources[n].Replicas}
		c.PodSets = append(c.PodSets, podSet)
		c.note(object, "custompodresources[%d] becomes --pod-set %s; what the template requests counts", n, podSet)
	}
}

// settings are what becomes of the rest.
func (c *conversion) settings(aw *unstructured.Unstructured) {
	c.Name = cmp.Or(c.Name, c.old.Name)
	c.Namespace = cmp.Or(c.Namespace, c.old.Namespace)
	c.Queue = cmp.Or(c.Queue, c.old.Labels[v1beta2.QueueNameLabel])
	c.Labels, c.Annotations = c.old.Labels, map[string]string{}
	maps.Copy(c.Annotations, c.old.Annotations)
	delete(c.Annotations, corev1.LastAppliedConfigAnnotation)
	scheduling := c.old.Spec.Scheduling
	for _, row := range []struct {
		annotation, unit string
		value            int
	}{
		{v1beta2.RetryLimitAnnotation, "", scheduling.Requeuing.MaxNumRequeuings},
		{v1beta2.WarmupGracePeriodDurationAnnotation, "s", scheduling.Requeuing.TimeInSeconds},
		{v1beta2.RetryPausePeriodDurationAnnotation, "s", scheduling.Requeuing.PauseTimeInSeconds},
	} {
		if row.value > 0 {
			c.Annotations[row.annotation] = fmt.Sprint(row.value) + row.unit
		}
	}
	for _, row := range []struct {
		lost bool
		note string
	}{
		{c.Queue == "", "it names no queue: choose one with --queue"},
		{c.old.Spec.Priority != 0 && c.Priority == "", fmt.Sprintf("spec.priority %v is a number: choose a PriorityClass with --priority", c.old.Spec.Priority)},
		{scheduling.MinAvailable > 0, "spec.schedulingSpec.minAvailable is not taken over: all pods have to be ready; --pod-group lets them start together"},
		{len(scheduling.NodeSelector) > 0, "spec.schedulingSpec.nodeSelector is not taken over: set it in the pod templates"},
		{scheduling.DispatchDuration.Limit > 0, "spec.schedulingSpec.dispatchDuration.limit is not taken over: set activeDeadlineSeconds in the templates"},
	} {
		if row.lost {
			c.note(aw, "%s", row.note)
		}
	}
}

// fields are those below which there are other fields, which is true, and those with a rule. The form of a path has
// no numbers.
type fields map[string]bool

var mcadFields = fields{
	"spec": true, "spec.priority": false,
	"spec.resources": true, "spec.resources.Items": false, "spec.resources.GenericItems": true, "spec.resources.GenericItems[]": true,
	"spec.resources.GenericItems[].generictemplate": false, "spec.resources.GenericItems[].replicas": false,
	"spec.resources.GenericItems[].custompodresources": false, "spec.resources.GenericItems[].completionstatus": false,
	"spec.schedulingSpec": true, "spec.schedulingSpec.minAvailable": false, "spec.schedulingSpec.nodeSelector": false,
	"spec.schedulingSpec.requeuing": true, "spec.schedulingSpec.requeuing.timeInSeconds": false,
	"spec.schedulingSpec.requeuing.pauseTimeInSeconds": false, "spec.schedulingSpec.requeuing.maxNumRequeuings": false,
	"spec.schedulingSpec.dispatchDuration": true, "spec.schedulingSpec.dispatchDuration.limit": false,
	"apiVersion": false, "kind": false, "metadata": false, "status": false,
}

// without returns the paths of what is set and has no rule.
func (f fields) without(value any, path, form string) (found []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, f.ruled(v[key], joined(path, key), joined(form, key))...)
		}
	case []any:
		for i := range v {
			found = append(found, f.ruled(v[i], fmt.Sprintf("%s[%d]", path, i), form+"[]")...)
		}
	}
	return found
}

func (f fields) ruled(value any, path, form string) []string {
	switch deeper, hasRule := f[form]; {
	case deeper:
		return f.without(value, path, form)
	case hasRule || isEmpty(value):
		return nil
	}
	return []string{path}
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// isEmpty: it says nothing, nor does what is in it.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(field any) bool { return !isEmpty(field) })
	case []any:
		return len(v) == 0
	}
	return slices.Contains([]any{nil, "", false, int64(0), 0.0}, value)
}
