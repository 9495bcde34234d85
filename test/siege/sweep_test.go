// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// sweep removes all that a siege has left, whoever would keep it, so that the next one begins in an empty field.
func (w *world) sweep(t *testing.T) {
	t.Helper()
	err := patience.Poll(context.WithoutCancel(t.Context()), time.Second, func(ctx context.Context) (bool, error) {
		left := 0
		for resource := range w.resources {
			for i := range teams {
				left += w.sweepAway(ctx, w.resources[resource], team(i), "")
			}
		}
		return left == 0, nil
	})
	if err != nil {
		t.Errorf("the siege has left something: %v", err)
	}
}

// purge removes what an episode has left, so that the next one of its team has quota.
func (w *world) purge(ctx context.Context, namespace, episode string) {
	_ = patience.PollFor(ctx, 2*time.Second, time.Minute, func(ctx context.Context) (bool, error) {
		left := 0
		for _, resource := range w.resources {
			left += w.sweepAway(ctx, resource, namespace, episode)
		}
		return left == 0, nil
	}) // at the end, sweep says what is left
}

// sweepAway removes the objects of a resource: all of them, or those of an episode.
func (w *world) sweepAway(ctx context.Context, resource schema.GroupVersionResource, namespace, episode string) (left int) {
	api := w.see.Resource(resource).Namespace(namespace)
	list, err := api.List(ctx, metav1.ListOptions{})
	if apierrors.IsMethodNotSupported(err) || resource.Resource == "events" {
		return 0 // a question, or what controllers say about all this
	}
	if err != nil {
		return 1 // it is read again
	}
	for _, o := range list.Items {
		if o.GetCreationTimestamp().Time.Before(w.ready) || episode != "" && referee.EpisodeOf(o.GetName()) != episode {
			continue
		}
		left++
		_ = api.Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground)}) // it is listed again
		if len(o.GetFinalizers()) > 0 && o.GetDeletionTimestamp() != nil && time.Since(o.GetDeletionTimestamp().Time) > 5*time.Second {
			_, _ = api.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
	return left
}
