// SPDX-License-Identifier: Apache-2.0

// Package appwrapper keeps AppWrappers: it observes one, asks lifecycle what to
// do next, saves the answer and then acts on it. Everything that is clever is in
// lifecycle; this package knows how to ask the API server and how to tell it.
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

// Reconciler looks after AppWrappers, one at a time.
type Reconciler struct {
	// client is for writing.
	client client.Client
	// cached is where to read.
	cached client.Reader
	// live reads from the API server. It is asked where a cache that lags behind
	// could do harm, and for kinds that nobody watches, which have no cache.
	live client.Reader
	// watch tells what the cache knows about a kind, and begins to watch it.
	watch func(context.Context, kinds.Kind) (coverage, error)
	// recorder tells users what happened.
	recorder events.EventRecorder
	metrics  *metrics

	// problem is what admission would have refused, where nobody asked it; nil where it
	// is asked. What was stored before is not judged again.
	problem func(admissionrules.Decoded) string

	// rules say which nodes have to be left; there are none where nobody looks at nodes.
	rules    nodehealth.Rules
	defaults lifecycle.Defaults
	// allPods is what is done to every pod template.
	allPods podtemplate.Edit
	now     func() time.Time
}

// Reconcile takes an AppWrapper one step further. Steps follow each other because
// every save and every change of the world wakes it again.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil || o == nil {
		return reconcile.Result{}, expected(err)
	}
	d, err := r.decide(ctx, o, r.now())
	if err != nil {
		return reconcile.Result{}, expected(err)
	}
	if err := r.save(ctx, o.aw, d.Status); err != nil {
		return reconcile.Result{}, expected(err)
	}
	r.announce(ctx, o, d)
	again, err := r.act(ctx, o, d)
	if err != nil {
		return reconcile.Result{}, expected(err)
	}
	return reconcile.Result{RequeueAfter: sooner(d.Requeue, again, o.nextLook(d))}, nil
}

// save writes the status where it differs, unless somebody else has changed the
// AppWrapper since it was observed: what was decided may no longer be right. In
// particular, quota may have been taken back.
func (r *Reconciler) save(ctx context.Context, aw *v1beta2.AppWrapper, status v1beta2.AppWrapperStatus) error {
	if equality.Semantic.DeepEqual(aw.Status, status) {
		return nil
	}
	before := v1beta2.AppWrapper{Status: aw.Status} // nobody has to compare templates
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

// metadataOf is what writes are made with: the API server answers them with metadata
// then, and does not send templates that nobody reads.
func metadataOf(aw *v1beta2.AppWrapper) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: *aw.ObjectMeta.DeepCopy()}
	metadata.SetGroupVersionKind(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))
	return metadata
}

// expected silences what happens in the best of worlds: the AppWrapper is gone,
// or it has changed and its change will wake us.
func expected(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// sooner is the shortest of the given waits, where 0 is no wait at all but never.
func sooner(waits ...time.Duration) time.Duration {
	var shortest time.Duration
	for _, wait := range waits {
		if wait > 0 && (shortest == 0 || wait < shortest) {
			shortest = wait
		}
	}
	return shortest
}
