// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// atOnce is the shortest wait there is.
const atOnce = time.Nanosecond

// act carries out the effect of a decision whose status has been saved. It returns when to
// reconcile again; 0 means at the next event.
func (r *Reconciler) act(ctx context.Context, o *observation, d lifecycle.Decision) (time.Duration, error) {
	switch d.Effect {
	case lifecycle.Nothing:
		return 0, nil
	case lifecycle.AddFinalizer:
		return 0, r.addFinalizer(ctx, o.aw)
	case lifecycle.RemoveFinalizer:
		return 0, r.removeFinalizer(ctx, o.aw)
	}
	current, err := r.current(ctx, o.aw)
	if err != nil || current == nil {
		return 0, err
	}
	o.aw = current
	switch d.Effect {
	case lifecycle.Create:
		return r.create(ctx, o, d.Targets)
	case lifecycle.Delete:
		return 0, r.remove(ctx, o, d.Targets)
	}
	return 0, r.forceDelete(ctx, o, d.Targets)
}

// current reads the AppWrapper from the API server, with whole templates. It returns nil if
// it is no longer the one that was decided upon: Kueue takes quota back, and gives it again,
// by changing it.
func (r *Reconciler) current(ctx context.Context, aw *v1beta2.AppWrapper) (*v1beta2.AppWrapper, error) {
	now := &v1beta2.AppWrapper{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(aw), now); err != nil {
		return nil, fmt.Errorf("cannot read the AppWrapper again: %w", err)
	}
	if now.UID != aw.UID || now.ResourceVersion != aw.ResourceVersion {
		return nil, nil
	}
	return now, nil
}

func hasFinalizer(aw *v1beta2.AppWrapper) bool {
	return controllerutil.ContainsFinalizer(aw, v1beta2.AppWrapperFinalizer)
}

func (r *Reconciler) addFinalizer(ctx context.Context, aw *v1beta2.AppWrapper) error {
	observed, changed := metadataOf(aw), metadataOf(aw)
	controllerutil.AddFinalizer(changed, v1beta2.AppWrapperFinalizer)
	if err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(observed, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot add the finalizer: %w", err)
	}
	return nil
}

func (r *Reconciler) removeFinalizer(ctx context.Context, aw *v1beta2.AppWrapper) error {
	observed, changed := metadataOf(aw), metadataOf(aw)
	controllerutil.RemoveFinalizer(changed, v1beta2.AppWrapperFinalizer)
	if err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(observed, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot remove the finalizer: %w", err)
	}
	return nil
}

// remove deletes the targets. An error for one does not keep the others from being deleted.
func (r *Reconciler) remove(ctx context.Context, o *observation, targets []int, options ...client.DeleteOption) error {
	var errs []error
	for _, i := range targets {
		if name := o.snapshot.Components[i].Name; o.snapshot.Components[i].Unreadable {
			errs = append(errs, fmt.Errorf("cannot delete %s: the permission to get it is missing, so its owner is unknown", name))
		} else if o.components[i].object != nil {
			errs = append(errs, r.deleteOne(ctx, o.components[i].object, options...))
		}
	}
	return errors.Join(errs...)
}

// forceDelete deletes the components only when no pod is left: deleted earlier, they would
// leave pods behind on the kubelets.
func (r *Reconciler) forceDelete(ctx context.Context, o *observation, targets []int) error {
	if len(o.pods) == 0 {
		return r.remove(ctx, o, targets, client.GracePeriodSeconds(0))
	}
	var errs []error
	for i := range o.pods {
		errs = append(errs, r.deleteOne(ctx, &o.pods[i], client.GracePeriodSeconds(0)))
	}
	return errors.Join(errs...)
}

// deleteOne deletes the object with the UID that was observed. If it is gone, or another one
// has its name, there is nothing to delete.
func (r *Reconciler) deleteOne(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	options = append(options,
		client.Preconditions{UID: ptr.To(object.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	err := r.client.Delete(ctx, object, options...)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("cannot delete %s: %w", object.GetName(), err)
}
