// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/test/patience"
)

// sweep removes all that a siege has left, whoever would keep it, so that the next one begins in an empty field.
func (w *world) sweep(t *testing.T) {
	t.Helper()
	err := patience.Poll(context.WithoutCancel(t.Context()), time.Second, func(ctx context.Context) (bool, error) {
		left := 0
		for resource := range w.resources {
			for i := range lanes {
				left += w.sweepAway(ctx, w.resources[resource], fmt.Sprintf("siege-%d", i))
			}
		}
		return left == 0, nil
	})
	if err != nil {
		t.Errorf("the siege has left something: %v", err)
	}
}

// kept are what namespaces have of their own.
var kept = map[string]bool{"kube-root-ca.crt": true, "kubernetes": true}

func (w *world) sweepAway(ctx context.Context, resource schema.GroupVersionResource, namespace string) (left int) {
	api := w.see.Resource(resource).Namespace(namespace)
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 1 // it is read again
	}
	for _, o := range list.Items {
		if kept[o.GetName()] {
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
