// SPDX-License-Identifier: Apache-2.0

// Package runs is what users do with Runs. It reads the objects of codeflare.dev in manifests, judges
// them as an API server does, and plans their Runs, all without a cluster. On a cluster it submits
// them, shows how far they are, and cancels and retries them.
package runs

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runschema"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Manifests are the objects of some files.
type Manifests struct {
	Applications []v1alpha1.Application
	DataSets     []v1alpha1.DataSet
	Runs         []v1alpha1.Run
	Sizes        []v1alpha1.RunSizeConfiguration
	// Notes are about what else is in the files.
	Notes []string
	// GPUResourceName is the resource that sizes mean by gpu, empty for that of a platform whose
	// administrator changed nothing.
	GPUResourceName string

	// ungrouped: the controller of the cluster makes no PodGroups.
	ungrouped bool
	// objects are all of them, as their author wrote them.
	objects   []*unstructured.Unstructured
	documents []manifests.Document
	schema    runschema.Schema
	seen      map[string]bool
}

// Read reads files and folders. The file "-" is stdin. Objects that name no namespace get the given one,
// which may be empty.
func Read(files []string, stdin io.Reader, namespace string) (Manifests, error) {
	schema, err := runschema.New()
	if err != nil {
		return Manifests{}, err
	}
	documents, err := manifests.Read(files, stdin, false)
	if err != nil {
		return Manifests{}, err
	}
	m, err := Manifests{schema: schema, documents: documents}.In(namespace)
	if err != nil {
		return Manifests{}, err
	}
	if len(m.Runs) == 0 {
		return Manifests{}, fmt.Errorf("there is no Run in %s: name a file that has one", strings.Join(files, ", "))
	}
	return m, nil
}

// In returns the same manifests, with the given namespace where they name none.
func (m Manifests) In(namespace string) (Manifests, error) {
	in := Manifests{schema: m.schema, documents: m.documents, seen: map[string]bool{}, GPUResourceName: m.GPUResourceName}
	for _, d := range m.documents {
		if err := in.add(d.Object, namespace); err != nil {
			return Manifests{}, fmt.Errorf("%s: %s %s: %w", d.File, d.Object.GetKind(), d.Object.GetName(), err)
		}
	}
	return in, nil
}

// Only returns an error if an object is of another namespace than the given one.
func (m Manifests) Only(namespace string) error {
	var problems []error
	for _, o := range m.objects {
		if own := o.GetNamespace(); own != "" && own != namespace {
			problems = append(problems, fmt.Errorf("%s %s has namespace %s, but --namespace is %s: remove one of them", o.GetKind(), o.GetName(), own, namespace))
		}
	}
	return printing.JoinErrors(problems)
}

func (m *Manifests) add(object *unstructured.Unstructured, namespace string) error {
	if object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
		m.Notes = append(m.Notes, fmt.Sprintf("%s %s is not of %s and was not looked at", object.GetKind(), object.GetName(), v1alpha1.GroupVersion.Group))
		return nil
	}
	if object.GetName() == "" && object.GetGenerateName() != "" {
		return errors.New("a cluster would generate its name: set metadata.name to plan it")
	}
	stored, err := m.schema.Create(object)
	if err != nil {
		return err
	}
	if stored.GetKind() != v1alpha1.RunSizeConfigurationKind && stored.GetNamespace() == "" {
		stored.SetNamespace(namespace)
	}
	key := strings.Join([]string{stored.GetKind(), stored.GetNamespace(), stored.GetName()}, "/")
	if m.seen[key] {
		return errors.New("it is there twice: remove one")
	}
	m.seen[key] = true
	written := object.DeepCopy()
	written.SetNamespace(stored.GetNamespace())
	m.objects = append(m.objects, written)
	return m.keep(stored)
}

func (m *Manifests) keep(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case v1alpha1.ApplicationKind:
		return appendTo(&m.Applications, object)
	case v1alpha1.DataSetKind:
		return appendTo(&m.DataSets, object)
	case v1alpha1.RunKind:
		return appendTo(&m.Runs, object)
	}
	return appendTo(&m.Sizes, object)
}

func appendTo[T any](list *[]T, object *unstructured.Unstructured) error {
	var decoded T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &decoded); err != nil {
		return fmt.Errorf("cannot decode it: %w", err)
	}
	*list = append(*list, decoded)
	return nil
}
