// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// denied are the rights that an installation takes and the user has not. Who may do
// everything, as most who install, is asked once.
func denied(ctx context.Context, api api, all []*delivery) ([]string, error) {
	everything := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if may, err := allowed(ctx, api, everything); err != nil || may {
		return nil, err
	}
	var missing []string
	for _, a := range needed(api, all) {
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

// needed are the rights to make, see, change and remove what the releases are made of,
// the records of Helm among it. Of kinds that the cluster does not know yet nothing is asked.
func needed(api api, all []*delivery) []authorizationv1.ResourceAttributes {
	needs := []authorizationv1.ResourceAttributes{{Verb: "list", Group: "apps", Resource: "deployments"}}
	add := func(group, resource, namespace string, verbs ...string) {
		for _, verb := range append([]string{"get", "create", "patch"}, verbs...) {
			a := authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace}
			if !slices.Contains(needs, a) {
				needs = append(needs, a)
			}
		}
	}
	add("", "namespaces", "")
	for _, d := range all {
		add("", "secrets", d.Namespace, "delete", "list", "update")
		for _, o := range d.objects {
			gvk := o.GroupVersionKind()
			if mapping, err := api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
				add(gvk.Group, mapping.Resource.Resource, o.GetNamespace(), "delete")
			}
		}
	}
	return needs
}

func allowed(ctx context.Context, api api, a authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
	answer, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot ask which rights you have: %w", err)
	}
	return answer.Status.Allowed, nil
}
