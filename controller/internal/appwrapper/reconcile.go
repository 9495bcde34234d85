// SPDX-License-Identifier: Apache-2.0

// Package appwrapper reconciles AppWrappers: it observes one, asks lifecycle what to do
// next, saves the answer and then acts on it. All decisions are in lifecycle; this package
// reads from the API server and writes to it.
package appwrapper

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// +kubebuilder:rbac:groups=workload.codeflare.dev,resources=appwrappers,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=workload.codeflare.dev,resources=appwrappers/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=workload.codeflare.dev,resources=appwrappers/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles AppWrappers.
type Reconciler struct {
	// client is for writing.
	client client.Client
	// cached is where to read.
	cached client.Reader
	// live reads from the API server: what confirm.go asks for, and kinds that have no cache.
	live client.Reader
	// watch tells what the cache knows about a kind, and begins to watch it.
	watch func(context.Context, kinds.Kind) (coverage, error)
	// lastState is the state in which a component ended that is gone, nil if unknown.
	lastState func(kinds.Kind, types.NamespacedName) client.Object
	// recorder tells users what happened.
	recorder events.EventRecorder
	metrics  *metrics

	// problem is what admission would have refused; nil if the webhooks are on. AppWrappers
	// that were seen before are not validated again.
	problem func(admissionrules.Decoded) string

	// rules say which nodes have to be left; empty if nodes are not monitored.
	rules nodehealth.Rules
	// devices count as surplus even for AppWrappers that ask for none.
	devices  []string
	defaults lifecycle.Defaults
	// allPods is applied to every pod template.
	allPods podtemplate.Edit
	now     func() time.Time
	// since is when this controller began.
	since time.Time
}

// Reconcile takes an AppWrapper one step further. Every save and every relevant change of
// the cluster triggers the next step.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil || o == nil {
		return reconcile.Result{}, ignoreExpected(err)
	}
	d, err := r.decide(ctx, o, r.now())
	if err != nil {
		return reconcile.Result{}, ignoreExpected(err)
	}
	if err := r.save(ctx, o.aw, d.Status); err != nil {
		return reconcile.Result{}, ignoreExpected(err)
	}
	r.announce(ctx, o, d)
	again, err := r.act(ctx, o, d)
	if err != nil {
		return reconcile.Result{}, ignoreExpected(err)
	}
	next := o.nextLook(d, r.now(), r.since)
	if kind := o.unsynced(next); kind != "" {
		r.tell(o, lifecycle.NotWatched(kind))
	}
	return reconcile.Result{RequeueAfter: shortest(d.Requeue, again, next)}, nil
}

// save writes the status if it differs. It fails with a conflict if the AppWrapper has
// changed since it was observed: the decision may be wrong by now, for example because
// quota was taken back.
func (r *Reconciler) save(ctx context.Context, aw *v1beta2.AppWrapper, status v1beta2.AppWrapperStatus) error {
	if equality.Semantic.DeepEqual(aw.Status, status) {
		return nil
	}
	before := v1beta2.AppWrapper{Status: aw.Status} // without templates, which need not be compared
	before.ResourceVersion = aw.ResourceVersion
	after := v1beta2.AppWrapper{Status: status}
	change, err := client.MergeFromWithOptions(&before, client.MergeFromWithOptimisticLock{}).Data(&after)
	if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	saved := metadataOf(aw)
	if err := r.client.Status().Patch(ctx, saved, client.RawPatch(types.MergePatchType, change)); err != nil {
		return fmt.Errorf("cannot save the status: %w", err)
	}
	aw.ResourceVersion, aw.Status = saved.ResourceVersion, status
	return nil
}

// metadataOf is the object that writes are made with, so that the API server answers with
// metadata only and does not send the templates back.
func metadataOf(aw *v1beta2.AppWrapper) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: *aw.ObjectMeta.DeepCopy()}
	metadata.SetGroupVersionKind(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))
	return metadata
}

// ignoreExpected drops NotFound and Conflict: the AppWrapper is gone, or it has changed and
// the change triggers another reconcile.
func ignoreExpected(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// shortest of the waits; 0 means never.
func shortest(waits ...time.Duration) time.Duration {
	var least time.Duration
	for _, wait := range waits {
		if wait > 0 && (least == 0 || wait < least) {
			least = wait
		}
	}
	return least
}
