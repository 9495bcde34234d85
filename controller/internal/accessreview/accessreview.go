// SPDX-License-Identifier: Apache-2.0

// Package accessreview asks the API server who holds a right: a user, or the controller
// itself.
package accessreview

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=selfsubjectaccessreviews;subjectaccessreviews,verbs=create

// Self tells whether the controller holds a right, in one namespace or, where that is
// empty, in all.
func Self(ctx context.Context, c client.Writer, namespace, verb string, resource schema.GroupVersionResource) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: On(namespace, verb, resource)},
	}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("cannot check whether the controller may %s %s: %w", verb, resource.GroupResource(), err)
	}
	return review.Status.Allowed, nil
}

// wrapVerbs: the AppWrapper controller creates what is wrapped with rights of its own, so an
// author must hold one of these on the wrapped resource. wrap is a verb of MLBatch: it lets an
// administrator allow, say, PyTorchJobs only when they are queued.
var wrapVerbs = []string{"create", "wrap"}

// Review asks the API server about a user and fills in the review's status.
type Review func(context.Context, *authorizationv1.SubjectAccessReview) error

// With asks through a client.
func With(c client.Writer) Review {
	return func(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
		return c.Create(ctx, review)
	}
}

// Allows tells whether a user holds a right in a namespace.
func (r Review) Allows(ctx context.Context, user authenticationv1.UserInfo, namespace, verb string, resource schema.GroupVersionResource) (bool, error) {
	review := Of(user)
	review.Spec.ResourceAttributes = On(namespace, verb, resource)
	if err := r(ctx, review); err != nil {
		return false, fmt.Errorf("cannot check whether %s may %s %s: %w", user.Username, verb, resource.GroupResource(), err)
	}
	return review.Status.Allowed, nil
}

// MayWrap tells whether a user may put a resource into an AppWrapper.
func (r Review) MayWrap(ctx context.Context, user authenticationv1.UserInfo, namespace string, resource schema.GroupVersionResource) (bool, error) {
	for _, verb := range wrapVerbs {
		if allowed, err := r.Allows(ctx, user, namespace, verb, resource); allowed || err != nil {
			return allowed, err
		}
	}
	return false, nil
}

// Of is a question about a user, with everything that a role or a webhook may go by. It
// still lacks what the right is to.
func Of(user authenticationv1.UserInfo) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra},
	}
}

// On is the right to do something with a resource.
func On(namespace, verb string, resource schema.GroupVersionResource) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
	}
}
