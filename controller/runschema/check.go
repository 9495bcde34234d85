// SPDX-License-Identifier: Apache-2.0

package runschema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// Problems are sentences about one manifest.
type Problems []string

// Error joins the sentences.
func (p Problems) Error() string { return strings.Join(p, "; ") }

// Create returns what an API server stores when the object is created with strict field
// validation, or the Problems for which it is refused. The object has a name, because nothing is
// generated. A namespace that is absent stays so.
func (s Schema) Create(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	d, err := s.definitionOf(object)
	if err != nil {
		return nil, err
	}
	stored := object.DeepCopy()
	if problems := d.unknown(stored); len(problems) > 0 {
		return nil, problems
	}
	defaulting.Default(stored.Object, d.structural)
	wrong := d.metadata(stored)
	if len(wrong) == 0 {
		wrong = d.validate(stored, nil)
	}
	if problems := sentences(wrong); len(problems) > 0 {
		return nil, problems
	}
	return stored, nil
}

// Update returns the Problems for which an API server refuses to replace one stored object by
// another.
func (s Schema) Update(object, old *unstructured.Unstructured) error {
	d, err := s.definitionOf(object)
	if err != nil {
		return err
	}
	if problems := sentences(d.validate(object, old)); len(problems) > 0 {
		return problems
	}
	return nil
}

func (s Schema) definitionOf(object *unstructured.Unstructured) (definition, error) {
	d, known := s[object.GetKind()]
	if !known {
		return definition{}, Problems{fmt.Sprintf("%s has no kind %s: use Application, DataSet, Run or RunSizeConfiguration", v1alpha1.GroupVersion.Group, object.GetKind())}
	}
	if object.GetAPIVersion() != v1alpha1.GroupVersion.String() {
		return definition{}, Problems{fmt.Sprintf("there is no version %s: use %s", object.GetAPIVersion(), v1alpha1.GroupVersion)}
	}
	return d, nil
}

// unknown are fields that the API server would drop, or refuse if asked to be strict.
func (d definition) unknown(object *unstructured.Unstructured) Problems {
	var problems Problems
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object.Object, d.structural, true, options) {
		problems = append(problems, fmt.Sprintf("%s is an unknown field", path))
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(metadata, &metav1.ObjectMeta{}, true)
	var strict interface{ Errors() []error }
	if errors.As(err, &strict) {
		for _, unknown := range strict.Errors() {
			problems = append(problems, "metadata: "+unknown.Error())
		}
	} else if err != nil {
		problems = append(problems, "metadata: "+err.Error())
	}
	return problems
}

func (d definition) metadata(object *unstructured.Unstructured) field.ErrorList {
	path := field.NewPath("metadata")
	if object.GetName() == "" {
		return field.ErrorList{field.Required(path.Child("name"), "")}
	}
	if !d.namespaced && object.GetNamespace() != "" {
		return field.ErrorList{field.Forbidden(path.Child("namespace"), object.GetKind()+" has no namespace")}
	}
	withNamespace := object
	if d.namespaced && object.GetNamespace() == "" {
		withNamespace = object.DeepCopy()
		withNamespace.SetNamespace(metav1.NamespaceDefault)
	}
	return metavalidation.ValidateObjectMetaAccessor(withNamespace, d.namespaced, metavalidation.NameIsDNSSubdomain, path)
}

// validate applies the schema and, if the object has its form, the rules.
func (d definition) validate(object, old *unstructured.Unstructured) field.ErrorList {
	if problems := validation.ValidateCustomResource(nil, object.Object, d.validator); len(problems) > 0 {
		return problems
	}
	var before any
	if old != nil {
		before = old.Object
	}
	problems, _ := d.rules.Validate(context.Background(), nil, d.structural, object.Object, before, celconfig.RuntimeCELCostBudget)
	return problems
}

// sentences are what a user has to know of problems, each once.
func sentences(problems field.ErrorList) Problems {
	var all Problems
	for _, p := range problems {
		sentence := fmt.Sprintf("%s: %s", p.Field, p.ErrorBody())
		if p.Type == field.ErrorTypeInvalid && p.Detail != "" {
			sentence = fmt.Sprintf("%s: %s", p.Field, strings.TrimPrefix(p.Detail, p.Field+" in body "))
		}
		if sentence = strings.TrimPrefix(sentence, "<nil>: "); !slices.Contains(all, sentence) {
			all = append(all, sentence)
		}
	}
	return all
}
