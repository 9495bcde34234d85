// SPDX-License-Identifier: Apache-2.0

// Package run reconciles Runs: it observes one, asks runlife what to do next, saves the answer and
// then acts on it. All decisions are in runlife; this package reads from the API server and
// writes to it.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/echoes"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// In all namespaces. Where Runs are enabled, a RoleBinding adds what act.go and pods need.
//
// +kubebuilder:rbac:groups=codeflare.dev,resources=applications;datasets;runs;runsizeconfigurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=codeflare.dev,resources=runs/status,verbs=patch
// +kubebuilder:rbac:groups=workload.codeflare.dev,resources=appwrappers,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Reconciler reconciles Runs.
type Reconciler struct {
	// client is for writing.
	client client.Client
	// cached is where to read.
	cached client.Reader
	// live reads from the API server.
	live client.Reader
	// recorder tells users what happened.
	recorder events.EventRecorder
	metrics  *metrics
	settings runplan.Settings
	now      func() time.Time
	// authors are asked about again when an AppWrapper is made.
	authors accessreview.Authors
	// recorded: the webhooks of Runs are served, so that annotations say who made a Run. Without them, its
	// author wrote what they say.
	recorded bool

	// answers are what the API server said to the AppWrappers of Runs.
	answers answers
	// echoes are our own writes to Runs that the cache does not have yet, and created the AppWrappers.
	echoes, created echoes.Pending
}

// Reconcile takes a Run as many steps further as need no change of the cluster. Every relevant change
// triggers the next reconcile.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	run, err := r.read(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.echoes.Await(run, r.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	o, err := r.observe(ctx, run)
	if err != nil {
		return reconcile.Result{}, err
	}
	if o.awaits > 0 {
		return reconcile.Result{RequeueAfter: o.awaits}, nil
	}
	wait, err := r.step(ctx, o)
	if err != nil {
		return reconcile.Result{}, err
	}
	if o.unwatched && (wait == 0 || wait > pollPeriod) {
		wait = pollPeriod
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// step decides, saves, announces and acts. It does so again if the API server answered what the
// decision depends on, and after a save, whose answer is the newest Run there is. After an effect, and
// while a Run is not accepted, the next change of the cluster triggers the next step.
func (r *Reconciler) step(ctx context.Context, o *observation) (wait time.Duration, err error) {
	d, err := r.decide(ctx, o)
	if err != nil {
		return 0, err
	}
	changed := !equality.Semantic.DeepEqual(o.Run.Status, d.Status)
	if changed {
		if saved, err := r.save(ctx, o, d.Status); !saved {
			return 0, err
		}
	}
	r.announce(ctx, o.Snapshot, d)
	o.Run.Status = d.Status
	answered, err := r.carryOut(ctx, o, d)
	if err == nil && changed && !d.Acts() && meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.Accepted) {
		answered, err = true, r.observeAgain(ctx, o)
	}
	if err != nil || !answered {
		return d.Requeue, err
	}
	return r.step(ctx, o)
}

// carryOut carries out the effects of a decision about the Run and its steps. It reports whether a
// snapshot has an answer of the API server that it lacked.
func (r *Reconciler) carryOut(ctx context.Context, o *observation, d runlife.Decision) (answered bool, err error) {
	answered, err = r.act(ctx, o, &o.Snapshot, d.Effect)
	for i := range d.Steps {
		more, failure := r.act(ctx, o, &o.Steps[i], d.Steps[i].Effect)
		answered, err = answered || more, errors.Join(err, failure)
	}
	return answered, err
}

// decide reads pods only if the decision depends on them.
func (r *Reconciler) decide(ctx context.Context, o *observation) (runlife.Decision, error) {
	d := runlife.Decide(o.Snapshot, r.now())
	if !d.NeedsPods {
		return d, nil
	}
	if len(d.Steps) == 0 {
		if err := r.readPods(ctx, &o.Snapshot); err != nil {
			return d, err
		}
	}
	for i := range d.Steps {
		if !d.Steps[i].NeedsPods {
			continue
		}
		if err := r.readPods(ctx, &o.Steps[i]); err != nil {
			return d, err
		}
	}
	return runlife.Decide(o.Snapshot, r.now()), nil
}

func (r *Reconciler) readPods(ctx context.Context, s *runlife.Snapshot) error {
	pods, err := r.endedPods(ctx, s)
	s.Pods = &pods
	return err
}

// save writes the status. Nothing is saved if the Run has changed since it was observed, or is gone:
// the change wakes the controller.
func (r *Reconciler) save(ctx context.Context, o *observation, status v1alpha1.RunStatus) (saved bool, err error) {
	run := o.Run
	before := v1alpha1.Run{Status: run.Status}
	before.ResourceVersion = run.ResourceVersion
	after := v1alpha1.Run{Status: status}
	change, err := client.MergeFromWithOptions(&before, client.MergeFromWithOptimisticLock{}).Data(&after)
	if err != nil {
		return false, fmt.Errorf("cannot write the status: %w", err)
	}
	stored := metadataOf(run)
	if err := r.client.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, change)); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("cannot save the status: %w", err)
	}
	r.echoes.Expect(stored, r.now())
	run.ResourceVersion, o.saved = stored.ResourceVersion, true
	return true, nil
}

// metadataOf is the object that writes are made with, so that the API server answers with
// metadata only.
func metadataOf(run *v1alpha1.Run) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: *run.ObjectMeta.DeepCopy()}
	metadata.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RunKind))
	return metadata
}

// answers remembers the API server's last answer about a Run and each of its steps, whose name is
// empty for the Run itself. A new process asks again.
type answers struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]map[string]answer
}

type answer struct {
	run  types.UID
	plan uint64
	*runlife.Answer
}

// to is the answer to a plan: another Application asks another question.
func (a *answers) to(s runlife.Snapshot) *runlife.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.byName[client.ObjectKeyFromObject(s.Run)][s.StepName()]; known.run == s.Run.UID && known.plan == digest(s.Plan) {
		return known.Answer
	}
	return nil
}

func (a *answers) remember(s *runlife.Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil {
		a.byName = map[types.NamespacedName]map[string]answer{}
	}
	key := client.ObjectKeyFromObject(s.Run)
	if a.byName[key] == nil {
		a.byName[key] = map[string]answer{}
	}
	a.byName[key][s.StepName()] = answer{s.Run.UID, digest(s.Plan), s.Answer}
}

// digest tells plans apart.
func digest(plan runlife.Plan) uint64 {
	h := fnv.New64a()
	for _, planned := range plan.Planned {
		_ = json.NewEncoder(h).Encode(planned.AppWrapper) // a hash takes everything
	}
	return h.Sum64()
}

// forget forgets what was said about a Run.
func (a *answers) forget(run types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byName, run)
}

// taken forgets what was said about an AppWrapper that exists now.
func (a *answers) taken(s *runlife.Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byName[client.ObjectKeyFromObject(s.Run)], s.StepName())
}
