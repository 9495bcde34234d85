// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// pollPeriod is how often an AppWrapper is looked at whose label somebody removed, and how often Datashim's
// Datasets are for a Run that waits for one.
const pollPeriod = 5 * time.Minute

// observation is a Run, and what was read about it.
type observation struct {
	runlife.Snapshot
	// unwatched: an AppWrapper exists, and the cache does not have it, or Datashim may get a Dataset.
	unwatched bool
	// saved: this reconcile has saved the Run, so it is the newest there is.
	saved bool
	// awaits is how long at most to wait for the cache to have an AppWrapper that was just created.
	awaits time.Duration
}

// read fails if there is no such Run.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{}
	err := r.cached.Get(ctx, key, run)
	if apierrors.IsNotFound(err) {
		r.answers.forget(key)
		r.echoes.Forget(key)
		r.created.Forget(key)
	}
	return run, err
}

// observe reads what a decision about a Run depends on.
func (r *Reconciler) observe(ctx context.Context, run *v1alpha1.Run) (*observation, error) {
	if !r.recorded {
		delete(run.Annotations, v1alpha1.AuthorAnnotation)
	}
	o := &observation{Snapshot: runlife.Snapshot{Run: run}}
	if err := r.observeWork(ctx, o, &o.Snapshot); err != nil {
		return nil, err
	}
	for i := range run.Status.Steps {
		step := runlife.OfStep(run, i)
		if err := r.observeWork(ctx, o, &step); err != nil {
			return nil, err
		}
		o.Steps = append(o.Steps, step)
	}
	return o, nil
}

// observeAgain is for a Run that has just been saved, and may need something else now.
func (r *Reconciler) observeAgain(ctx context.Context, o *observation) error {
	again, err := r.observe(ctx, o.Run)
	if err == nil {
		again.saved = true
		*o = *again
	}
	return err
}

// observeWork completes the snapshot of the Run or of one of its steps.
func (r *Reconciler) observeWork(ctx context.Context, o *observation, s *runlife.Snapshot) error {
	if s.Idle {
		return nil
	}
	if err := r.observeAppWrapper(ctx, o, s); err != nil {
		return err
	}
	if !runlife.NeedsPlan(*s) {
		return nil
	}
	var err error
	if s.Plan, err = r.plan(ctx, s); err != nil {
		return err
	}
	o.unwatched = o.unwatched || r.settings.Datashim && slices.ContainsFunc(s.Plan.Problems, inputNotFound)
	s.Answer = r.answers.to(*s)
	return r.observeEarlier(ctx, s)
}

// observeEarlier asks the API server whether a Run that is about to become a workflow has an AppWrapper
// already. Its Application may have been another one a moment ago, and the cache may be late.
func (r *Reconciler) observeEarlier(ctx context.Context, s *runlife.Snapshot) error {
	if s.AppWrapper != nil || !s.IsWorkflow() {
		return nil
	}
	var err error
	s.AppWrapper, err = appWrapper(ctx, r.live, types.NamespacedName{Namespace: s.Run.Namespace, Name: s.AppWrapperName()})
	return err
}

// observeAppWrapper reads from the API server before a recorded AppWrapper counts as gone.
func (r *Reconciler) observeAppWrapper(ctx context.Context, o *observation, s *runlife.Snapshot) error {
	key := types.NamespacedName{Namespace: s.Run.Namespace, Name: s.AppWrapperName()}
	var err error
	if s.AppWrapper, err = appWrapper(ctx, r.cached, key); err != nil {
		return err
	}
	if s.AppWrapper != nil {
		r.created.Forget(key)
	}
	o.awaits = max(o.awaits, r.created.AwaitCreated(key, r.now()))
	recorded := s.Run.Status.AppWrapper
	if recorded == nil || !s.Run.DeletionTimestamp.IsZero() || s.Run.Status.Phase.Terminal() || s.AppWrapper != nil && s.AppWrapper.UID == recorded.UID {
		return nil
	}
	s.AppWrapper, err = appWrapper(ctx, r.live, key)
	o.unwatched = o.unwatched || s.AppWrapper != nil
	return err
}

// appWrapper returns nil if there is none.
func appWrapper(ctx context.Context, from client.Reader, key types.NamespacedName) (*v1beta2.AppWrapper, error) {
	aw := &v1beta2.AppWrapper{}
	err := from.Get(ctx, key, aw)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read AppWrapper %s: %w", key.Name, err)
	}
	return aw, nil
}

// plan reads what the Run or the step names, and plans it.
func (r *Reconciler) plan(ctx context.Context, s *runlife.Snapshot) (plan runlife.Plan, err error) {
	run := s.Run
	in := runplan.Input{Run: run, Step: s.Step, Settings: r.settings, Outline: true}
	application := &v1alpha1.Application{}
	err = r.cached.Get(ctx, types.NamespacedName{Namespace: runplan.ApplicationNamespace(run), Name: run.Spec.Application.Name}, application)
	switch {
	case err == nil:
		in.Application = application
	case !apierrors.IsNotFound(err):
		return plan, fmt.Errorf("cannot read Application %s: %w", run.Spec.Application.Name, err)
	}
	var sizes v1alpha1.RunSizeConfigurationList
	if err := r.cached.List(ctx, &sizes, client.UnsafeDisableDeepCopy); err != nil {
		return plan, fmt.Errorf("cannot list RunSizeConfigurations: %w", err)
	}
	var dataSets v1alpha1.DataSetList
	if err := r.cached.List(ctx, &dataSets, client.InNamespace(run.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return plan, fmt.Errorf("cannot list DataSets: %w", err)
	}
	in.Sizes, in.DataSets = sizes.Items, dataSets.Items
	if in.Application != nil && in.Application.Spec.API.IsWorkflow() {
		var applications v1alpha1.ApplicationList
		if err := r.cached.List(ctx, &applications, client.InNamespace(application.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return plan, fmt.Errorf("cannot list Applications: %w", err)
		}
		in.Applications = applications.Items
	}
	plan.Planned, plan.Problems = runplan.Plans(in)
	return r.withDatashim(ctx, in, plan)
}

// enoughPods is how many pods are read: there may be thousands, each as large as its author likes.
const enoughPods = 20

// endedPods are some of a Run's or a step's. Only those that failed say why it failed, and those of an
// AppWrapper that succeeded, what their code was. A broker tells the counts of its queue. Where the
// right to list pods was taken away, nothing does. Members cannot give their pods the label of an
// AppWrapper.
func (r *Reconciler) endedPods(ctx context.Context, s *runlife.Snapshot) ([]corev1.Pod, error) {
	phase := corev1.PodFailed
	if s.AppWrapper != nil && s.AppWrapper.Status.Phase == v1beta2.AppWrapperSucceeded {
		phase = corev1.PodSucceeded
	}
	var pods corev1.PodList
	of := client.MatchingLabels{v1beta2.AppWrapperLabel: s.AppWrapperName(), v1alpha1.RunLabel: s.Run.Name}
	err := r.live.List(ctx, &pods, client.InNamespace(s.Run.Namespace), client.Limit(enoughPods), of,
		client.MatchingFields{"status.phase": string(phase)})
	if err == nil && runplan.HasQueue(s.Run) {
		var brokers corev1.PodList
		of[v1alpha1.RoleLabel] = runplan.BrokerRole
		err = r.live.List(ctx, &brokers, client.InNamespace(s.Run.Namespace), client.Limit(enoughPods), of)
		pods.Items = append(pods.Items, brokers.Items...)
	}
	if apierrors.IsForbidden(err) {
		log.FromContext(ctx).Info("cannot list the pods, so lastFailure and commit stay as they were", "because", err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the pods: %w", err)
	}
	return pods.Items, nil
}
