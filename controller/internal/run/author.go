// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// left says what the author of a Run may not do any more: a Run may wait for days. Runs of earlier releases do not
// say which groups their authors are in.
func (r *Reconciler) left(ctx context.Context, s *runlife.Snapshot) (string, error) {
	run := s.Run
	record, recorded := run.Annotations[v1alpha1.AuthorGroupsAnnotation]
	if !recorded {
		return "", nil
	}
	author, err := accessreview.Recorded(run.Annotations[v1alpha1.AuthorAnnotation], run.Annotations[v1alpha1.AuthorUIDAnnotation], record)
	if err != nil {
		return "", err
	}
	for _, right := range r.needed(s) {
		if allowed, err := right.held(ctx, author, right.namespace, right.resource); err != nil || !allowed {
			return runlife.NoLonger(author.Username, right.verb, right.resource, right.namespace), err
		}
	}
	return "", nil
}

// right is what an author needs, and who knows whether they hold it.
type right struct {
	verb, namespace string
	resource        schema.GroupVersionResource
	held            accessreview.Wraps
}

// needed are the rights without which the planned AppWrapper is not the author's.
func (r *Reconciler) needed(s *runlife.Snapshot) []right {
	asks := func(verb string) accessreview.Wraps {
		return func(ctx context.Context, user authenticationv1.UserInfo, namespace string, resource schema.GroupVersionResource) (bool, error) {
			return r.authors.Review.Allows(ctx, user, namespace, verb, resource)
		}
	}
	all := []right{{"create", s.Run.Namespace, v1beta2.GroupVersion.WithResource("appwrappers"), asks("create")}}
	if from := runplan.ApplicationNamespace(s.Run); from != s.Run.Namespace {
		all = append(all, right{"get", from, v1alpha1.GroupVersion.WithResource("applications"), asks("get")})
	}
	for _, resource := range wrappedBy(s) {
		all = append(all, right{"create or wrap", s.Run.Namespace, resource, r.authors.MayWrap})
	}
	return all
}

// wrappedBy are the resources of the planned AppWrapper.
func wrappedBy(s *runlife.Snapshot) []schema.GroupVersionResource {
	wrapped := runlife.Wrapped(s.Plan.Planned[0].AppWrapper)
	return slices.DeleteFunc(slices.Clone(runplan.Wrapped), func(r schema.GroupVersionResource) bool {
		return !slices.Contains(wrapped, r.GroupResource().String())
	})
}
