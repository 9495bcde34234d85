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
	"github.com/mlbatch/mlbatch/controller/internal/echoes"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/controller/quotareason"
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
	// heard is what the watch of pods told of those that are gone.
	heard *Heard
	// evicted tells whether Kueue evicts the AppWrapper with this UID.
	evicted func(context.Context, types.UID) (bool, error)
	// reclaimed tells whether Kueue evicts the AppWrapper with this UID because others want back what it has borrowed.
	reclaimed func(context.Context, types.UID) (bool, error)
	// says is what Kueue says of the quota of the AppWrapper with this UID.
	says func(context.Context, types.UID) (quotareason.Word, error)
	// waits tells why Kueue does not give the AppWrapper with this UID quota.
	waits func(context.Context, types.UID) (quotareason.Reason, error)
	// reserved is since when Kueue reserves quota for the AppWrapper with this UID; zero if unknown.
	reserved func(context.Context, types.UID) (time.Time, error)
	// activity tells whether devices compute; nil if nobody can.
	activity Activity
	// giveBack asks Kueue to take back the quota of the AppWrapper with this UID, and says why.
	giveBack func(ctx context.Context, aw types.UID, why string) error
	// reassign asks Kueue to assign the AppWrapper with this UID nodes that are not among these.
	reassign func(ctx context.Context, aw types.UID, nodes []v1beta2.AvoidedNode) error
	// dryRuns are answers to creations with dry run; nil if the webhooks are off, so that nobody has checked whether the
	// author of the AppWrapper may create its components.
	dryRuns *dryRuns
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
	// echoes are our own writes that the cache does not have yet.
	echoes echoes.Pending
	// failures are what was told of nodes on which programs fail.
	failures toldFailures
}

// Reconcile takes an AppWrapper as many steps further as need no change of the cluster. Every
// relevant change triggers the next reconcile.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil || o == nil {
		r.echoes.Forget(request.NamespacedName)
		return reconcile.Result{}, ignoreExpected(err)
	}
	if wait := r.echoes.Await(o.aw, r.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	for {
		wait, more, err := r.step(ctx, o)
		if err != nil || !more {
			return reconcile.Result{RequeueAfter: wait}, ignoreExpected(err)
		}
	}
}

// step decides, saves, announces and acts. It returns when to reconcile again, or that the next
// step need not wait: what it depends on besides the caches is known from the answers.
func (r *Reconciler) step(ctx context.Context, o *observation) (wait time.Duration, more bool, err error) {
	d, err := r.decide(ctx, o, r.now())
	if err != nil {
		return 0, false, err
	}
	if o.mayBeExcused(d) {
		return 0, false, nil
	}
	if err := r.keepBooks(ctx, o, &d); err != nil {
		return 0, false, err
	}
	if err := r.addWords(ctx, o, &d); err != nil {
		return 0, false, err
	}
	if err := r.saveDecision(ctx, o, d); err != nil {
		return 0, false, err
	}
	r.announce(ctx, o, d)
	again, more, err := r.act(ctx, o, d)
	if err != nil {
		return 0, false, err
	}
	if d.Moved(o.snapshot) || more {
		o.goOn()
		return 0, true, nil
	}
	next := o.nextLook(d, r.now(), r.since)
	if kind := o.unsynced(next); kind != "" {
		r.tell(o, lifecycle.NotWatched(kind))
	}
	return shortest(d.Requeue, again, next, untilProven(d.Status, r.now())), false, nil
}

// saveDecision saves the status of a decision. The answer to the save that begins an attempt is
// the whole AppWrapper, whose templates are needed next.
func (r *Reconciler) saveDecision(ctx context.Context, o *observation, d lifecycle.Decision) error {
	begins := d.Moved(o.snapshot) && d.Status.Phase == v1beta2.AppWrapperResuming
	if begins {
		whole := &v1beta2.AppWrapper{ObjectMeta: *o.aw.ObjectMeta.DeepCopy()}
		if err := r.patchStatus(ctx, o.aw, d.Status, whole); err != nil {
			return err
		}
		o.aw, o.whole, o.untried = whole, true, true
	} else if saved, err := r.save(ctx, o.aw, d.Status); err != nil || !saved {
		return err
	}
	o.saved()
	return nil
}

// save writes the status if it differs. It fails with a conflict if the AppWrapper has
// changed since it was observed: the decision may be wrong by now, for example because
// quota was taken back.
func (r *Reconciler) save(ctx context.Context, aw *v1beta2.AppWrapper, status v1beta2.AppWrapperStatus) (saved bool, err error) {
	if equality.Semantic.DeepEqual(aw.Status, status) {
		return false, nil
	}
	answer := metadataOf(aw)
	if err := r.patchStatus(ctx, aw, status, answer); err != nil {
		return false, err
	}
	aw.ResourceVersion, aw.Status = answer.ResourceVersion, status
	return true, nil
}

// patchStatus sends what changed and reads the answer.
func (r *Reconciler) patchStatus(ctx context.Context, aw *v1beta2.AppWrapper, status v1beta2.AppWrapperStatus, answer client.Object) error {
	before := v1beta2.AppWrapper{Status: aw.Status} // without templates, which need not be compared
	before.ResourceVersion = aw.ResourceVersion
	after := v1beta2.AppWrapper{Status: status}
	change, err := client.MergeFromWithOptions(&before, client.MergeFromWithOptimisticLock{}).Data(&after)
	if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	if err := r.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, change)); err != nil {
		return fmt.Errorf("cannot save the status: %w", err)
	}
	r.echoes.Expect(answer, r.now())
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
