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
