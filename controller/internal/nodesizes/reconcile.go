// SPDX-License-Identifier: Apache-2.0

// Package nodesizes writes to each ResourceFlavor what the largest of its nodes have, for members, who may read
// flavors and not nodes. What that is decides package slackquota.
package nodesizes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

const fieldOwner = "mlbatch-node-sizes"

// reconciler writes the annotation of all flavors.
type reconciler struct {
	cached client.Reader
	client client.Client
	settle time.Duration
}

// Reconcile decides from the cache. A write fails if the flavor has changed since, and is then decided again.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	nodes, flavors, err := nodewatch.Read(ctx, r.cached)
	if err != nil {
		return ctrl.Result{}, err
	}
	return nodewatch.WriteAll(flavors, r.settle, func(flavor kueue.ResourceFlavor) (time.Duration, error) {
		return 0, r.publish(ctx, &flavor, slackquota.Publish(&flavor, nodes))
	})
}

// publish writes what a flavor says, if that changes.
func (r *reconciler) publish(ctx context.Context, flavor *kueue.ResourceFlavor, text string) error {
	if flavor.DeletionTimestamp != nil || flavor.Annotations[v1beta2.LargestNodeAnnotation] == text {
		return nil
	}
	var value any // null removes it
	if text != "" {
		value = text
	}
	change, _ := json.Marshal(map[string]any{"metadata": map[string]any{ // cannot fail
		"resourceVersion": flavor.ResourceVersion, "annotations": map[string]any{v1beta2.LargestNodeAnnotation: value},
	}})
	err := r.client.Patch(ctx, flavor.DeepCopy(), client.RawPatch(types.MergePatchType, change), client.FieldOwner(fieldOwner))
	if err != nil {
		return fmt.Errorf("cannot write what the largest nodes of ResourceFlavor %s have: %w", flavor.Name, err)
	}
	return nil
}
