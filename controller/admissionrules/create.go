// SPDX-License-Identifier: Apache-2.0

// Package admissionrules answers whether an AppWrapper is valid before it is stored, and what
// may change about it afterwards. The webhooks apply these rules, and so do the command line
// and the tests of the generator. They make no requests, so they do not check whether an
// author may create what they wrap.
package admissionrules

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// Limits are the most that one AppWrapper may have.
type Limits struct {
	Components, PodSets int
}

// DefaultLimits has as many pod sets as a Workload of any supported Kueue may have.
var DefaultLimits = Limits{Components: 64, PodSets: 8}

// Template decodes the resource that a component wraps, without what AddExtras has added. It fails if to decode the
// pod templates in it would not end.
func Template(component *v1beta2.AppWrapperComponent) (*unstructured.Unstructured, error) {
	template := &unstructured.Unstructured{}
	if err := template.UnmarshalJSON(component.Template.Raw); err != nil {
		return nil, fmt.Errorf("cannot decode the wrapped resource: %w", err)
	}
	if err := checkAmounts(template.Object); err != nil {
		return nil, err
	}
	withoutExtras(template.Object)
	return template, nil
}

// Decoded is an AppWrapper with its templates, decoded once for all checks.
type Decoded struct {
	AppWrapper *v1beta2.AppWrapper
	// Templates has one for each component; it is nil where Errors says why it does not decode.
	Templates []*unstructured.Unstructured
	Errors    []error
}

// Decode decodes the templates of all components.
func Decode(aw *v1beta2.AppWrapper) Decoded {
	d := Decoded{
		AppWrapper: aw,
		Templates:  make([]*unstructured.Unstructured, len(aw.Spec.Components)),
		Errors:     make([]error, len(aw.Spec.Components)),
	}
	for i := range aw.Spec.Components {
		d.Templates[i], d.Errors[i] = Template(&aw.Spec.Components[i])
	}
	return d
}

// ValidateCreate lists everything that is wrong with a new AppWrapper.
func ValidateCreate(aw *v1beta2.AppWrapper, limits Limits) field.ErrorList {
	return Decode(aw).ValidateCreate(limits)
}

// ValidateCreate lists everything that is wrong with a new AppWrapper.
func (d Decoded) ValidateCreate(limits Limits) field.ErrorList {
	components := field.NewPath("spec", "components")
	if n := len(d.Templates); n > limits.Components {
		return field.ErrorList{field.TooMany(components, n, limits.Components)}
	}
	var problems field.ErrorList
	names := objectNames{}
	podSets, pods := 0, int64(0)
	for i, template := range d.Templates {
		path := components.Index(i)
		if err := d.Errors[i]; err != nil {
			problems = append(problems, field.Invalid(path.Child("template"), "…", err.Error()))
			continue
		}
		problems = append(problems, validateObject(template, d.AppWrapper.Namespace, path.Child("template"))...)
		problems = append(problems, names.add(template, path.Child("template", "metadata", "name"))...)
		found, wrong := validatePodSets(d.AppWrapper.Spec.Components[i].DeclaredPodSets, template, path)
		wrong = append(wrong, d.validateMetadata(i, path.Child("template"))...)
		wrong = append(wrong, d.impossible(i, path.Child("template"))...)
		wrong = append(wrong, d.validateDevices(i)...)
		if len(wrong) == 0 {
			wrong = validateLabels(d.AppWrapper.Name, i, template, found, path.Child("template"))
		}
		podSets += len(found)
		for _, podSet := range found {
			pods += int64(podSet.Count())
		}
		problems = append(problems, wrong...)
	}
	// After another problem the count may be wrong, and would only cause a second one.
	if len(problems) == 0 {
		problems = append(problems, validateCount(podSets, limits.PodSets, components)...)
		problems = append(problems, d.validatePods(podSets, pods, components)...)
		problems = append(problems, validateName(d.AppWrapper, podSets)...)
	}
	return append(problems, validateAnnotations(d.AppWrapper.Annotations)...)
}

func validateObject(template *unstructured.Unstructured, namespace string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if template.GroupVersionKind() == v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind) {
		problems = append(problems, field.Forbidden(path, "an AppWrapper cannot wrap another one"))
	}
	gv := template.GroupVersionKind().GroupVersion()
	if known := kinds.Versions(template.GroupVersionKind().GroupKind()); len(known) > 0 && !slices.Contains(known, gv.String()) {
		problems = append(problems, field.NotSupported(path.Child("apiVersion"), gv.String(), known))
	}
	if own := template.GetNamespace(); own != "" && own != namespace {
		problems = append(problems, field.Forbidden(path.Child("metadata", "namespace"),
			fmt.Sprintf("must be empty or the AppWrapper's own namespace %q", namespace)))
	}
	if finalizers := template.GetFinalizers(); len(finalizers) > 0 {
		problems = append(problems, field.Forbidden(path.Child("metadata", "finalizers"),
			"must be empty: the AppWrapper would keep its quota until somebody removes them"))
	}
	if metav1.GetControllerOf(template) != nil {
		problems = append(problems, field.Forbidden(path.Child("metadata", "ownerReferences"),
			"must not name a controller: that will be the AppWrapper"))
	}
	return problems
}

// objectNames are the objects that an AppWrapper will own. A second one of the same name would
// be taken for the first.
type objectNames map[string]bool

func (n objectNames) add(template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	name := template.GetName()
	if name == "" {
		if template.GetGenerateName() == "" {
			return field.ErrorList{field.Required(path, "a name or a generateName")}
		}
		return nil
	}
	key := template.GroupVersionKind().GroupKind().String() + "/" + name
	if n[key] {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	n[key] = true
	return nil
}

// validatePodSets also returns the pod sets of the component, as far as they are known.
func validatePodSets(declared []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured, path *field.Path) ([]v1beta2.AppWrapperPodSet, field.ErrorList) {
	problems := validateDeclared(declared, template, path)
	kind := kinds.For(template.GroupVersionKind())
	inferred, err := kind.InferPodSets(template)
	if err == nil {
		if wrong := wrongFields(inferred, template); len(wrong) > 0 {
			return declared, append(problems, unlessTyped(template, wrong, path)...)
		}
		err = checkPodSets(inferred, template)
	}
	if err == nil {
		err = kind.Uncounted(template)
	}
	if err != nil {
		return declared, append(problems, field.Invalid(path.Child("template"), template.GetKind(), err.Error()))
	}
	if err := kinds.CheckDeclared(declared, inferred); err != nil {
		problems = append(problems, field.Invalid(path.Child("podSets"), len(declared), err.Error()))
	}
	if len(declared) > 0 {
		return declared, problems
	}
	return inferred, problems
}

// PodSets are those that the status records for a component. Like admission, it refuses a
// negative number of pods, with which the status could not be saved, and a path without a pod
// template, which could not be queued.
func PodSets(declared []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured) ([]v1beta2.AppWrapperPodSet, error) {
	found, err := kinds.PodSets(declared, template)
	if err != nil {
		return nil, err
	}
	return found, checkPodSets(found, template)
}

func validateDeclared(declared []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured, component *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, podSet := range declared {
		at := component.Child("podSets").Index(i)
		if podSet.Count() < 0 {
			problems = append(problems, field.Invalid(at.Child("replicas"), podSet.Count(), "must not be negative"))
		}
		if podSet.Path == "" {
			problems = append(problems, field.Required(at.Child("path"), "where the pod template is, for example template.spec.template"))
			continue
		}
		if wrong := wrongFields([]v1beta2.AppWrapperPodSet{podSet}, template); len(wrong) > 0 {
			problems = append(problems, unlessTyped(template, wrong, component)...)
		} else if _, err := podtemplate.Find(template.Object, podSet.Path); err != nil {
			problems = append(problems, field.Invalid(at.Child("path"), podSet.Path, err.Error()))
		}
	}
	return problems
}

// wrongFields are those of pod templates that have another type than in the API. Their paths begin in the component.
func wrongFields(podSets []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured) field.ErrorList {
	var problems field.ErrorList
	for _, podSet := range podSets {
		var invalid *podtemplate.SpecError
		if _, err := podtemplate.Find(template.Object, podSet.Path); errors.As(err, &invalid) {
			problems = append(problems, misfits(invalid.Spec, reflect.TypeFor[corev1.PodSpec](), field.NewPath(podSet.Path, "spec"))...)
		}
	}
	return problems
}

// unlessTyped leaves out problems that wrongTypes finds, too.
func unlessTyped(template *unstructured.Unstructured, problems field.ErrorList, component *field.Path) field.ErrorList {
	if scheme.Scheme.Recognizes(template.GroupVersionKind()) {
		return nil
	}
	for _, p := range problems {
		p.Field = component.Child(p.Field).String()
	}
	return problems
}

// validateLabels refuses pod templates that have no room for our labels. Other edits are Kueue's and not known yet.
func validateLabels(name string, i int, template *unstructured.Unstructured, podSets []v1beta2.AppWrapperPodSet, path *field.Path) field.ErrorList {
	edited := template.DeepCopy()
	for _, podSet := range podSets {
		found, err := podtemplate.Find(edited.Object, podSet.Path)
		if err == nil {
			err = podtemplate.Apply(found, podtemplate.Edit{Labels: podtemplate.Labels(name, i)})
		}
		if err != nil {
			return field.ErrorList{field.Invalid(path, template.GetKind(), err.Error())}
		}
	}
	return nil
}

// checkPodSets refuses a negative number of pods and a path that leads to no pod template.
func checkPodSets(podSets []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured) error {
	if wrong := wrongFields(podSets, template); len(wrong) > 0 {
		for _, p := range wrong {
			p.Field = strings.TrimPrefix(p.Field, "template.")
		}
		return wrong.ToAggregate()
	}
	for _, podSet := range podSets {
		if podSet.Count() < 0 {
			return fmt.Errorf("%q would make %d pods", podSet.Path, podSet.Count())
		}
		if _, err := podtemplate.Find(template.Object, podSet.Path); err != nil {
			return err
		}
	}
	return nil
}

// validatePods refuses pod sets without a single pod: the work would be Running until somebody deletes it, since nobody
// can change how many there are. What says itself that it has succeeded may do so without a pod. Of kinds that are not
// known, nobody knows what they do.
func (d Decoded) validatePods(podSets int, pods int64, path *field.Path) field.ErrorList {
	if podSets == 0 || pods > 0 {
		return nil
	}
	for i, template := range d.Templates {
		kind := kinds.For(template.GroupVersionKind())
		if kind.HasVerdict() || !kind.Known() && len(d.AppWrapper.Spec.Components[i].DeclaredPodSets) > 0 {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path, pods, "there are no pods, and what is wrapped cannot be scaled: write how many replicas there are")}
}

func validateCount(podSets, limit int, path *field.Path) field.ErrorList {
	if podSets < 1 {
		return field.ErrorList{field.Invalid(path, podSets, "there must be at least one pod set, declared or inferred")}
	}
	if podSets > limit {
		return field.ErrorList{field.Invalid(path, podSets, fmt.Sprintf("there may be at most %d pod sets", limit))}
	}
	return nil
}
