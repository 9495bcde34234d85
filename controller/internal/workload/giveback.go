// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/deactivation"
)

// editor changes the status of Workloads as the API server has them, because the cache keeps less.
type editor struct {
	reader client.Reader
	client client.Client
}

// GiveBack asks Kueue to take back the quota of an AppWrapper, whose Workload says why. Without Kueue, or before
// Workloads are watched, nothing happens.
func (e *Evictions) GiveBack(ctx context.Context, aw types.UID, why string) error {
	err := e.ask(ctx, aw, func(live *editor, key client.ObjectKey) error {
		return live.edit(ctx, key, func(w *kueue.Workload) bool { return deactivation.Request(w, why, time.Now()) })
	})
	if err != nil {
		return fmt.Errorf("cannot ask Kueue to take quota back: %w", err)
	}
	return nil
}

// ask writes the Workloads of an AppWrapper. It tries again if Kueue has changed one meanwhile: no event of the
// AppWrapper would cause that.
func (e *Evictions) ask(ctx context.Context, aw types.UID, write func(*editor, client.ObjectKey) error) error {
	all, err := e.workloads(ctx, aw)
	if err != nil || len(all) == 0 {
		return err
	}
	e.mu.Lock()
	live := e.live
	e.mu.Unlock()
	for i := range all {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return write(live, client.ObjectKeyFromObject(&all[i])) })
		if apierrors.IsConflict(err) {
			return errChanging
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errChanging is of a Workload that others write all the time. It is no conflict for the caller: one of the
// AppWrapper needs no retry, because its change causes another look.
var errChanging = errors.New("others keep changing its Workload")

// edit writes a Workload if change reports that it has changed it, and nobody else has since it was read.
func (e *editor) edit(ctx context.Context, key client.ObjectKey, change func(*kueue.Workload) bool) error {
	w := &kueue.Workload{}
	if err := e.reader.Get(ctx, key, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	if !change(w) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := e.client.Status().Patch(ctx, w, patch, client.FieldOwner(deactivation.FieldOwner))
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("cannot write the status of Workload %s: %w", key, err)
}
