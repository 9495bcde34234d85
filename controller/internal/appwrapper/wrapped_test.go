// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/stories"
)

func kindNamed(kind string) schema.GroupVersionKind {
	for _, known := range []schema.GroupVersionKind{jobKind, pyTorchJobKind, serviceKind, customKind} {
		if known.Kind == kind {
			return known
		}
	}
	panic("the stories have got a new kind: " + kind)
}

var (
	pyTorchJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}
	serviceKind    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
)

func componentOf(c stories.Component) *given.ComponentBuilder {
	kind := kindNamed(c.Kind)
	object := map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": c.Name},
	}
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main"}}}}
	switch kind {
	case jobKind:
		return given.Job(c.Name, int64(c.Pods))
	case pyTorchJobKind:
		replicas := map[string]any{"Worker": map[string]any{"replicas": c.Pods, "template": template}}
		object["spec"] = map[string]any{"pytorchReplicaSpecs": replicas}
	case customKind:
		object["spec"] = map[string]any{"template": template}
		return given.Component(object).Declaring("template.spec.template", c.Pods)
	}
	return given.Component(object)
}

// refuse is the API server's answer to creates. It also plays an operator that adds a finalizer
// to its objects.
func (l *life) refuse(object client.Object) error {
	for i, c := range l.story.Components {
		if kindOf(object) != kindNamed(c.Kind) || object.GetName() != c.Name {
			continue
		}
		if c.Refusal != nil && !l.permits[i] {
			return refusalOf(c)
		}
		if c.Held && !l.permits[i] {
			object.SetFinalizers([]string{"example.com/held"})
		}
	}
	return nil
}

func refusalOf(c stories.Component) error {
	kind := kindNamed(c.Kind)
	switch {
	case c.Refusal.Final:
		return apierrors.NewInvalid(kind.GroupKind(), c.Name, nil)
	case c.Refusal.Denied, strings.Contains(c.Refusal.Message, "quota"):
		return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, c.Name, errors.New(c.Refusal.Message))
	}
	return apierrors.NewInternalError(errors.New(c.Refusal.Message))
}
