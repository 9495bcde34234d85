// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
)

// clusterScoped is the text of two checks: equal problems are shown once.
const clusterScoped = "%s is a cluster-scoped kind; an AppWrapper can only own objects of its namespace"

// access decides whether an author may wrap a kind.
type access struct {
	// resourceOf finds the resource that serves a kind.
	resourceOf func(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
	mayWrap    accessreview.Wraps
}

// wrapped is a wrapped kind and the path of its template.
type wrapped struct {
	kind schema.GroupVersionKind
	path *field.Path
}

// check reviews each distinct kind once.
func (a *access) check(ctx context.Context, user authenticationv1.UserInfo, namespace string, components []wrapped) field.ErrorList {
	var problems field.ErrorList
	verdicts := map[schema.GroupVersionKind]func(*field.Path) *field.Error{}
	for _, component := range components {
		verdict, known := verdicts[component.kind]
		if !known {
			verdict = a.verdict(ctx, user, namespace, component.kind)
			verdicts[component.kind] = verdict
		}
		if problem := verdict(component.path); problem != nil {
			problems = append(problems, problem)
		}
	}
	return problems
}

// verdict returns the problem to report at each place where kind is wrapped.
func (a *access) verdict(ctx context.Context, user authenticationv1.UserInfo, namespace string, kind schema.GroupVersionKind) func(*field.Path) *field.Error {
	mapping, err := a.resourceOf(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return forbidden("the cluster does not serve the kind %s of %s, so nobody can be allowed to create it", kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return internal(fmt.Errorf("cannot find the resource of kind %s: %w", kind.Kind, err))
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return forbidden(clusterScoped, kind.Kind)
	}
	allowed, err := a.mayWrap(ctx, user, namespace, mapping.Resource)
	if err != nil {
		return internal(err)
	}
	if allowed {
		return func(*field.Path) *field.Error { return nil }
	}
	return forbidden("user %q may neither create nor wrap %s in namespace %q", user.Username, mapping.Resource.GroupResource(), namespace)
}

func forbidden(format string, args ...any) func(*field.Path) *field.Error {
	return func(path *field.Path) *field.Error { return field.Forbidden(path, fmt.Sprintf(format, args...)) }
}

func internal(err error) func(*field.Path) *field.Error {
	return func(path *field.Path) *field.Error { return field.InternalError(path, err) }
}
