// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// neededVerbs are what the controller does with what is wrapped.
var neededVerbs = []string{"create", "get", "delete"}

// ownRights tells whether the controller itself could deploy a kind. Without this check the
// author would learn that only after admission by Kueue, hours later.
type ownRights struct {
	resourceOf func(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
	allowed    func(ctx context.Context, namespace, verb string, resource schema.GroupVersionResource) (bool, error)
}

// check reviews each distinct kind once, except those in the controller's own role. If a
// review fails nothing is refused: creation will be.
func (o *ownRights) check(ctx context.Context, namespace string, components []wrapped) field.ErrorList {
	var problems field.ErrorList
	missing := map[schema.GroupVersionKind]string{}
	for _, component := range components {
		if kinds.For(component.kind).Known() {
			continue
		}
		why, asked := missing[component.kind]
		if !asked {
			why = o.missing(ctx, namespace, component.kind)
			missing[component.kind] = why
		}
		if why != "" {
			problems = append(problems, field.Forbidden(component.path, why))
		}
	}
	return problems
}

// missing names the right that the controller lacks for a kind; empty if none.
func (o *ownRights) missing(ctx context.Context, namespace string, kind schema.GroupVersionKind) string {
	mapping, err := o.resourceOf(kind.GroupKind(), kind.Version)
	if err != nil {
		return ""
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Sprintf(clusterScoped, kind.Kind)
	}
	for _, verb := range neededVerbs {
		allowed, err := o.allowed(ctx, namespace, verb, mapping.Resource)
		if err != nil {
			log.FromContext(ctx).Error(err, "cannot check the controller's own rights", "verb", verb, "resource", mapping.Resource)
			return ""
		}
		if !allowed {
			return fmt.Sprintf("the AppWrapper controller may not %s %s in namespace %q: ask an administrator to grant its service account that right",
				verb, mapping.Resource.GroupResource(), namespace)
		}
	}
	return ""
}
