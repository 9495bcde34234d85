// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// extraName is the name of a container that no pod gets: it requests what pods of a stored template would request and
// Kueue would not count. Template removes it.
const extraName = "counted-by-kueue"

// AddExtras writes into the pod templates what Kueue would not count of their pods otherwise. What another controller
// manages stays as it is: that one would create the container.
func AddExtras(aw *v1beta2.AppWrapper, s Surroundings) error {
	if !aw.ManagedByThisController() {
		return nil
	}
	for i := range aw.Spec.Components {
		if err := s.addExtra(&aw.Spec.Components[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s Surroundings) addExtra(component *v1beta2.AppWrapperComponent) error {
	template, err := Template(component)
	if err != nil {
		return nil // refused by validation
	}
	added := false
	for _, podSet := range podSetsIn(component, template) {
		pod, err := PodTemplate(template, podSet.Path)
		if err != nil {
			continue // refused by validation
		}
		found, _ := podtemplate.Find(template.Object, podSet.Path)
		if extra := s.extra(&pod); len(extra) > 0 {
			added = true
			appendExtra(found["spec"].(map[string]any), &pod, extra)
		}
	}
	if !added {
		return nil
	}
	raw, err := json.Marshal(template.Object)
	if err != nil {
		return fmt.Errorf("cannot encode what component %s wraps: %w", template.GetKind(), err)
	}
	component.Template.Raw = raw
	return nil
}

// podSetsIn leaves out those that validation refuses.
func podSetsIn(component *v1beta2.AppWrapperComponent, template *unstructured.Unstructured) []v1beta2.AppWrapperPodSet {
	podSets, err := kinds.PodSets(component.DeclaredPodSets, template)
	if err != nil {
		return nil
	}
	return podSets
}

// extra is what a container must request beside the others, so that Kueue counts as much as a pod requests.
func (s Surroundings) extra(pod *corev1.PodTemplateSpec) corev1.ResourceList {
	missing := lacking(s.requested(pod), s.counted(pod))
	if len(missing) == 0 {
		return nil
	}
	together := pod.DeepCopy()
	together.Spec.InitContainers = nil
	beside := s.counted(together)
	least := s.least()
	extra := corev1.ResourceList{}
	for name, needed := range missing {
		needed.Sub(beside[name])
		if floor := least[name]; needed.Cmp(floor) < 0 {
			needed = floor
		}
		extra[name] = needed
	}
	return extra
}

// lacking has, for each resource of which less is counted than requested, how much is requested.
func lacking(requested, counted corev1.ResourceList) corev1.ResourceList {
	missing := corev1.ResourceList{}
	for name, amount := range requested {
		if amount.Cmp(counted[name]) > 0 {
			missing[name] = amount.DeepCopy()
		}
	}
	return missing
}

// appendExtra adds a container that does no harm, either, where another controller takes over: it ends at once.
func appendExtra(spec map[string]any, pod *corev1.PodTemplateSpec, extra corev1.ResourceList) {
	amounts := map[string]any{}
	for name, amount := range extra {
		amounts[string(name)] = amount.String()
	}
	container := map[string]any{
		"name":      extraName,
		"command":   []any{"true"},
		"resources": map[string]any{"requests": amounts, "limits": maps.Clone(amounts)},
	}
	if len(pod.Spec.Containers) > 0 {
		container["image"] = pod.Spec.Containers[0].Image
	}
	containers, _ := spec["containers"].([]any)
	spec["containers"] = append(containers, container)
}

// withoutExtras removes what AddExtras has added.
func withoutExtras(value any) {
	switch v := value.(type) {
	case map[string]any:
		if containers, ok := v["containers"].([]any); ok {
			v["containers"] = slices.DeleteFunc(containers, isExtra)
		}
		for _, inner := range v {
			withoutExtras(inner)
		}
	case []any:
		for _, inner := range v {
			withoutExtras(inner)
		}
	}
}

func isExtra(container any) bool {
	c, ok := container.(map[string]any)
	return ok && c["name"] == extraName
}

// SameButForExtras tells whether two components wrap the same, as their author sees it: a manifest that is applied
// again does not have what AddExtras has added.
func SameButForExtras(a, b *v1beta2.AppWrapperComponent) bool {
	decodedA, errA := decode(a.Template.Raw)
	decodedB, errB := decode(b.Template.Raw)
	if errA != nil || errB != nil {
		return false
	}
	withoutExtras(decodedA)
	withoutExtras(decodedB)
	return equal(decodedA, decodedB)
}

// ValidateCounted lists the pod templates of which Kueue would not count all that their pods request: another webhook
// has changed them after AddExtras.
func (d Decoded) ValidateCounted(s Surroundings) field.ErrorList {
	var problems field.ErrorList
	for i, template := range d.Templates {
		if template == nil {
			continue
		}
		stored := &unstructured.Unstructured{}
		if err := stored.UnmarshalJSON(d.AppWrapper.Spec.Components[i].Template.Raw); err != nil {
			continue // Errors says so
		}
		for _, pod := range d.podTemplates(i) {
			asStored, err := PodTemplate(stored, pod.podSet)
			if err != nil {
				continue // refused by other rules
			}
			requested, counted := s.requested(&pod.pod), s.counted(&asStored)
			for _, name := range slices.Sorted(maps.Keys(lacking(requested, counted))) {
				asked, seen := requested[name], counted[name]
				problems = append(problems, field.Forbidden(pod.path, fmt.Sprintf("a pod requests %s of %s, of which Kueue counts %s: "+
					"another webhook has changed the pods; apply it again", &asked, name, &seen)))
			}
		}
	}
	return problems
}

// DependsOnSurroundings tells of what they are needed to count the pods: their LimitRanges, and which RuntimeClasses.
func (d Decoded) DependsOnSurroundings() (limitRanges bool, runtimeClasses []string) {
	for i := range d.Templates {
		for _, pod := range d.podTemplates(i) {
			if class := pod.pod.Spec.RuntimeClassName; class != nil && !slices.Contains(runtimeClasses, *class) {
				runtimeClasses = append(runtimeClasses, *class)
			}
			limitRanges = limitRanges || defaultsMatter(&pod.pod.Spec)
		}
	}
	return limitRanges, runtimeClasses
}

// defaultsMatter is true if Kueue gives a container another default than the API server does, or does not see the
// container.
func defaultsMatter(spec *corev1.PodSpec) bool {
	matters := slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return c.RestartPolicy != nil })
	eachContainer(spec, func(r *corev1.ResourceRequirements) {
		for name := range r.Limits {
			if _, requested := r.Requests[name]; !requested {
				matters = true
			}
		}
	})
	return matters
}
