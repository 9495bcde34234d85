// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rights are collected once each, in the order in which they are needed.
type rights []authorizationv1.ResourceAttributes

func (r *rights) add(group, resource, namespace string, verbs ...string) {
	for _, verb := range verbs {
		a := authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace}
		if !slices.Contains(*r, a) {
			*r = append(*r, a)
		}
	}
}

// addFor adds rights to an object. Of kinds that the cluster does not know yet nothing is asked.
func (r *rights) addFor(api api, o object, verbs ...string) {
	gvk := o.GroupVersionKind()
	if mapping, err := api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		r.add(gvk.Group, mapping.Resource.Resource, o.GetNamespace(), verbs...)
	}
}

// addForKinds adds the rights that it takes to see to the conversion of kinds that stay.
func (r *rights) addForKinds(objects []object) {
	if len(defined(objects)) > 0 {
		r.add("apiextensions.k8s.io", "customresourcedefinitions", "", "get", "list", "update")
	}
}

// toInstall are the rights to make, see, change and remove what the releases are made of,
// the records of Helm among it.
func toInstall(api api, all []*delivery) rights {
	var r rights
	r.add("apps", "deployments", "", "list")
	r.add("", "namespaces", "", "get", "create", "patch")
	for _, d := range all {
		r.add("", "secrets", d.Namespace, "get", "create", "patch", "delete", "list", "update")
		r.addForKinds(d.objects)
		for _, o := range d.objects {
			r.addFor(api, o, "get", "create", "patch", "delete")
			if keptByUs(o) {
				r.addFor(api, o, "update")
			}
		}
	}
	return r
}

// rights are those to take a release away.
func (m *removal) rights(api api) rights {
	var r rights
	r.add("", "secrets", m.Namespace, "update", "delete")
	r.addForKinds(m.objects)
	for _, o := range m.leaving() {
		r.addFor(api, o, "get", "delete")
	}
	return r
}

// denied are those rights that the user has not, in words. Who may do everything, as most
// who install, is asked once.
func (r rights) denied(ctx context.Context, api api) ([]string, error) {
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

func allowed(ctx context.Context, api api, a authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
	answer, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot ask which rights you have: %w", err)
	}
	return answer.Status.Allowed, nil
}
