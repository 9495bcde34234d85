// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rights is a list of permissions without duplicates, in the order in which they were added.
type Rights []authorizationv1.ResourceAttributes

// Add adds verbs on a resource.
func (r *Rights) Add(group, resource, namespace string, verbs ...string) {
	for _, verb := range verbs {
		a := authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace}
		if !slices.Contains(*r, a) {
			*r = append(*r, a)
		}
	}
}

// AddFor adds verbs on an object. It skips kinds that the cluster does not serve yet.
func (r *Rights) AddFor(api API, o client.Object, verbs ...string) {
	gvk := o.GetObjectKind().GroupVersionKind()
	if mapping, err := api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		r.Add(gvk.Group, mapping.Resource.Resource, o.GetNamespace(), verbs...)
	}
}

// Denied returns the rights that the user lacks, such as "create clusterroles". An
// administrator, who may do everything, costs one request.
func (r Rights) Denied(ctx context.Context, api API) ([]string, error) {
	everything := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if may, err := allowed(ctx, api, everything); err != nil || may {
		return nil, err
	}
	var missing []string
	for _, a := range r {
		may, err := allowed(ctx, api, a)
		if err != nil {
			return nil, err
		}
		if right := a.Verb + " " + a.Resource; !may && !slices.Contains(missing, right) {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

func allowed(ctx context.Context, api API, a authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
	answer, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot ask which rights you have: %w", err)
	}
	return answer.Status.Allowed, nil
}
