// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RightsMapper maps the kinds that Rights reads.
func RightsMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("Role"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	return mapper
}

// Rights returns a text that is another one when the user may do other things, in this namespace or in those of which
// something is watched. Whoever may read all roles and bindings gets it from memory; for others, the API server is
// asked. It is an error if that does not know all rights.
func (w *Watched) Rights(ctx context.Context, namespace string) (string, error) {
	if roles, err := w.roles(ctx); err == nil {
		return roles, nil
	}
	namespaces := map[string]bool{namespace: true}
	w.mutex.Lock()
	for _, l := range w.lists {
		if l.which.Namespace != "" {
			namespaces[l.which.Namespace] = true
		}
	}
	w.mutex.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: name}}
		if err := w.Create(ctx, review); err != nil {
			return "", err
		}
		if review.Status.Incomplete {
			return "", errors.New("the cluster does not know all rights")
		}
		var rules []string
		for _, rule := range review.Status.ResourceRules {
			rules = append(rules, rule.String())
		}
		slices.Sort(rules) // the API server has no order for them
		all = append(all, name+": "+strings.Join(rules, ""))
	}
	return strings.Join(all, "\n"), nil
}

// roles are the versions of all roles and bindings.
func (w *Watched) roles(ctx context.Context) (string, error) {
	var all strings.Builder
	for _, list := range []client.ObjectList{&rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.ClusterRoleList{}} {
		if err := w.List(ctx, list); err != nil {
			return "", err
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			return "", err
		}
		for _, o := range objects {
			object := o.(client.Object)
			fmt.Fprintf(&all, "%T %s %s\n", object, object.GetUID(), object.GetResourceVersion())
		}
	}
	return all.String(), nil
}

// Recheck makes what is asked next ask again for everything that is known: rights have changed, or may have.
func (w *Watched) Recheck() {
	w.mutex.Lock()
	w.rechecked = time.Now()
	w.mutex.Unlock()
	w.ring()
}

// outdated reports whether something that was read at a time has to be asked for again.
func (w *Watched) outdated(at time.Time) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return at.Before(w.rechecked)
}
