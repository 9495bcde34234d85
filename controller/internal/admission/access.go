// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
)

// The controller creates what is wrapped with rights of its own, so an author
// must hold one of these on the wrapped resource. wrap is a verb of MLBatch: it
// lets an administrator allow, say, PyTorchJobs only when they are queued.
var sufficientVerbs = []string{"create", "wrap"}

// clusterScoped is the text of two checks: equal problems are shown once.
const clusterScoped = "%s is a cluster-scoped kind; an AppWrapper can only own objects of its namespace"

// accessReview asks the API server and fills in the review's status.
type accessReview func(context.Context, *authorizationv1.SubjectAccessReview) error

// access decides whether an author may wrap a kind.
type access struct {
	// resourceOf finds the resource that serves a kind.
	resourceOf func(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
	review     accessReview
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
	for _, verb := range sufficientVerbs {
		review := newReview(user, namespace, verb, mapping.Resource)
		if err := a.review(ctx, review); err != nil {
			return internal(fmt.Errorf("cannot check whether %s may %s %s: %w", user.Username, verb, mapping.Resource.GroupResource(), err))
		}
		if review.Status.Allowed {
			return func(*field.Path) *field.Error { return nil }
		}
	}
	return forbidden("user %q may neither create nor wrap %s in namespace %q", user.Username, mapping.Resource.GroupResource(), namespace)
}

func forbidden(format string, args ...any) func(*field.Path) *field.Error {
	return func(path *field.Path) *field.Error { return field.Forbidden(path, fmt.Sprintf(format, args...)) }
}

func internal(err error) func(*field.Path) *field.Error {
	return func(path *field.Path) *field.Error { return field.InternalError(path, err) }
}

func newReview(user authenticationv1.UserInfo, namespace, verb string, resource schema.GroupVersionResource) *authorizationv1.SubjectAccessReview {
	review := accessreview.Of(user)
	review.Spec.ResourceAttributes = accessreview.On(namespace, verb, resource)
	return review
}
