// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// atOnce is the shortest wait there is.
const atOnce = time.Nanosecond

// act carries out the effect of a decision whose status has been saved. It returns when to
// reconcile again, where 0 means at the next event, or that the next step need not wait.
func (r *Reconciler) act(ctx context.Context, o *observation, d lifecycle.Decision) (again time.Duration, more bool, err error) {
	switch d.Effect {
	case lifecycle.Nothing:
		return 0, false, nil
	case lifecycle.AddFinalizer:
		err := r.addFinalizer(ctx, o.aw)
		o.snapshot.HasFinalizer = true
		return 0, err == nil, err
	case lifecycle.RemoveFinalizer:
		return 0, false, r.end(ctx, o)
	case lifecycle.TryCreate:
		return r.takeTurn(ctx, o, d.Targets)
	}
	if unchanged, err := r.confirmItself(ctx, o, d.Effect); err != nil || !unchanged {
		return 0, false, err
	}
	switch d.Effect {
	case lifecycle.GiveBack, lifecycle.Reassign:
		return 0, false, r.askKueue(ctx, o.aw.UID, d)
	case lifecycle.Create:
		return r.create(ctx, o, d.Targets)
	case lifecycle.Delete:
		more, err := r.remove(ctx, o, d.Targets)
		return 0, more, err
	}
	return 0, false, r.forceDelete(ctx, o, d.Targets)
}

// end lets the AppWrapper go. Its books are closed.
func (r *Reconciler) end(ctx context.Context, o *observation) error {
	if err := r.removeFinalizer(ctx, o.aw); err != nil {
		return err
	}
	r.closeBooks(o)
	return nil
}

// askKueue asks for what only Kueue can do.
func (r *Reconciler) askKueue(ctx context.Context, aw types.UID, d lifecycle.Decision) error {
	if d.Effect == lifecycle.Reassign {
		return r.reassign(ctx, aw, d.Status.AvoidedNodes)
	}
	return r.giveBack(ctx, aw, condition(d.Status, v1beta2.Idle).Message)
}

// confirmItself tells whether the AppWrapper is still the one that was decided upon: Kueue takes
// quota back, and gives it again, by changing it. If this reconcile has saved it, the answer has
// told that. One that is being deleted stays so, and its components are its own; but pods, which only force
// deletes, have no more than its name, which may be another's by now. Otherwise this reads it from the API
// server, with the templates that a create needs.
func (r *Reconciler) confirmItself(ctx context.Context, o *observation, effect lifecycle.Effect) (unchanged bool, err error) {
	if o.whole || o.current && effect != lifecycle.Create && effect != lifecycle.TryCreate || o.snapshot.Deleting && effect == lifecycle.Delete {
		return true, nil
	}
	now := &v1beta2.AppWrapper{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.aw), now); err != nil {
		return false, fmt.Errorf("cannot read the AppWrapper again: %w", err)
	}
	if now.UID != o.aw.UID || now.ResourceVersion != o.aw.ResourceVersion {
		return false, nil
	}
	o.aw = now
	return true, nil
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
	aw.ResourceVersion, aw.Finalizers = changed.ResourceVersion, changed.Finalizers
	r.echoes.Expect(changed, r.now())
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

// remove deletes the targets. An error for one does not keep the others from being deleted. If
// one is not there any more, which the cache has not heard of, the next step need not wait.
func (r *Reconciler) remove(ctx context.Context, o *observation, targets []int, options ...client.DeleteOption) (more bool, err error) {
	var errs []error
	for _, i := range targets {
		if name := o.snapshot.Components[i].Name; o.snapshot.Components[i].Unreadable {
			errs = append(errs, fmt.Errorf("cannot delete %s: the permission to get it is missing, so its owner is unknown", name))
		} else if o.components[i].object != nil {
			gone, err := r.deleteOne(ctx, o.components[i].object, options...)
			o.components[i].refuted = gone && !o.components[i].confirmed
			more, errs = more || o.components[i].refuted, append(errs, err)
		}
	}
	return more, errors.Join(errs...)
}

// forceDelete deletes the components only when no pod is left: deleted earlier, they would
// leave pods behind on the kubelets.
func (r *Reconciler) forceDelete(ctx context.Context, o *observation, targets []int) error {
	if len(o.pods) == 0 {
		_, err := r.remove(ctx, o, targets, client.GracePeriodSeconds(0))
		return err
	}
	var errs []error
	for i := range o.pods {
		_, err := r.deleteOne(ctx, &o.pods[i], client.GracePeriodSeconds(0))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteOne deletes the object with the UID that was observed. If it is gone, or another one
// has its name, there is nothing to delete.
func (r *Reconciler) deleteOne(ctx context.Context, object client.Object, options ...client.DeleteOption) (gone bool, err error) {
	options = append(options,
		client.Preconditions{UID: ptr.To(object.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	err = r.client.Delete(ctx, object, options...)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("cannot delete %s: %w", object.GetName(), err)
}
