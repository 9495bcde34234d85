// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/deactivation"
)

// asker asks Kueue to take quota back.
type asker struct {
	live   client.Reader
	client client.Client
	now    func() time.Time
}

// GiveBack asks Kueue to take back the quota of an AppWrapper, whose Workload says why. Without Kueue, or before
// Workloads are watched, nothing happens.
func (e *Evictions) GiveBack(ctx context.Context, aw types.UID, why string) error {
	all, err := e.workloads(ctx, aw)
	if err != nil || len(all) == 0 {
		return err
	}
	e.mu.Lock()
	asks := e.asks
	e.mu.Unlock()
	for i := range all {
		if err := asks.ask(ctx, client.ObjectKeyFromObject(&all[i]), why); err != nil {
			return err
		}
	}
	return nil
}

// ask looks at what the API server has, because the cache keeps less. A conflict is an error, so that it is tried
// again: no other event would cause that.
func (a *asker) ask(ctx context.Context, key client.ObjectKey, why string) error {
	w := &kueue.Workload{}
	if err := a.live.Get(ctx, key, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	if !deactivation.Request(w, why, a.now()) {
		return nil
	}
	return a.patch(ctx, before, w)
}

// patch writes the status of a Workload that is as it was read.
func (a *asker) patch(ctx context.Context, before, after *kueue.Workload) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := a.client.Status().Patch(ctx, after, patch, client.FieldOwner(deactivation.FieldOwner))
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("cannot ask Kueue to take the quota of Workload %s/%s back: %w", after.Namespace, after.Name, err)
}
