// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// observation is one look at an AppWrapper and what belongs to it.
type observation struct {
	// aw is the AppWrapper of the snapshot, without what caches drop. A save updates it, and
	// before something is created or deleted it is read from the API server.
	aw         *v1beta2.AppWrapper
	snapshot   lifecycle.Snapshot
	components []component
	pods       []corev1.Pod
	// podsConfirmed: the pods are those of the API server.
	podsConfirmed bool
	// cachedPods are those that the cache had.
	cachedPods []corev1.Pod
	// current: this reconcile has saved aw, so its resourceVersion is that of the API server.
	current bool
	// whole: aw is the answer to a save of this reconcile, with its templates.
	whole bool
	// untried: the attempt began in this reconcile, so nothing of it was created yet.
	untried bool
	// beginning: the watch of a component's kind has not synced yet.
	beginning bool
	// unwatched: a component exists whose changes trigger no reconcile.
	unwatched bool
	// unlabelled: a component of a watched kind has lost our label.
	unlabelled bool
}

// saved: the API server has taken the status, so the AppWrapper is known to be as it was observed.
// What was read of others before has to be read again where it counts: only from now on is it
// certain that no earlier decision creates anything.
func (o *observation) saved() {
	o.current, o.podsConfirmed = true, false
	for i := range o.components {
		o.components[i].confirmed = o.components[i].kind.GVK.Empty() // there is nothing to read
	}
}

// goOn makes this the observation of the next step.
func (o *observation) goOn() {
	o.snapshot.Status, o.snapshot.Activity = *o.aw.Status.DeepCopy(), lifecycle.ActivityNotAsked
}

// observe reads the caches. It returns nil for an AppWrapper that another controller manages.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*observation, error) {
	aw := &v1beta2.AppWrapper{}
	if err := r.cached.Get(ctx, key, aw); err != nil {
		return nil, fmt.Errorf("cannot get the AppWrapper: %w", err)
	}
	if !aw.ManagedByThisController() {
		return nil, nil
	}
	o := &observation{aw: aw, components: make([]component, len(aw.Spec.Components))}
	policy, _ := lifecycle.ParsePolicy(aw.Annotations, r.defaults)
	o.snapshot = lifecycle.Snapshot{
		Deleting:      !aw.DeletionTimestamp.IsZero(),
		DeletedAt:     ptr.Deref(aw.DeletionTimestamp, metav1.Time{}).Time,
		HasFinalizer:  hasFinalizer(aw),
		LastFinalizer: hasFinalizer(aw) && len(aw.Finalizers) == 1,
		Status:        *aw.Status.DeepCopy(),
		Policy:        policy,
		Components:    make([]lifecycle.Component, len(aw.Spec.Components)),
	}
	decoded := admissionrules.Decode(aw)
	if r.problem != nil && aw.Status.Phase == v1beta2.AppWrapperEmpty {
		o.snapshot.Problem = r.problem(decoded)
	}
	if err := r.observeQuota(ctx, o); err != nil {
		return nil, err
	}
	o.snapshot.Devices = r.countedDevices(aw, decoded.Templates)
	o.snapshot.Policy.ResetSurplus = policy.ResetSurplus && !undercounted(decoded)
	o.observeTurns()
	if err := r.observeComponents(ctx, o, decoded); err != nil {
		return nil, err
	}
	if err := r.observeSuspects(ctx, o); err != nil {
		return nil, err
	}
	return o, r.observePods(ctx, o)
}

// observeQuota: an AppWrapper that Kueue evicts counts as suspended. Why there is no quota matters only
// to those that wait.
func (r *Reconciler) observeQuota(ctx context.Context, o *observation) error {
	evicted, err := r.evicted(ctx, o.aw.UID)
	o.snapshot.Suspend = o.aw.Spec.Suspend || evicted
	if evicted {
		err = errors.Join(err, r.limitGrace(ctx, o))
	}
	if phase := o.aw.Status.Phase; o.snapshot.Suspend && err == nil && phase != v1beta2.AppWrapperEmpty {
		o.snapshot.Kueue, err = r.says(ctx, o.aw.UID)
	}
	if err != nil || o.aw.Status.Phase != v1beta2.AppWrapperSuspended {
		return err
	}
	o.snapshot.DryRun = r.dryRuns.of(o.aw.UID)
	o.snapshot.Waits, err = r.waits(ctx, o.aw.UID)
	return err
}

// limitGrace: whoever lends quota gets it back in bounded time, however long the borrower's pods may take to end.
func (r *Reconciler) limitGrace(ctx context.Context, o *observation) error {
	reclaimed, err := r.reclaimed(ctx, o.aw.UID)
	if reclaimed {
		p := &o.snapshot.Policy
		p.ForcefulDeletionGrace = min(p.ForcefulDeletionGrace, r.defaults.BorrowedGrace)
	}
	return err
}

func (r *Reconciler) observeComponents(ctx context.Context, o *observation, decoded admissionrules.Decoded) error {
	for i := range o.components {
		if err := r.observeComponent(ctx, o, i, decoded); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) observeComponent(ctx context.Context, o *observation, i int, decoded admissionrules.Decoded) error {
	c, template := &o.snapshot.Components[i], decoded.Templates[i]
	c.PodSetInfos = len(o.aw.Spec.Components[i].PodSetInfos)
	o.snapshot.NodesAssigned = o.snapshot.NodesAssigned || slices.ContainsFunc(o.aw.Spec.Components[i].PodSetInfos,
		func(info v1beta2.AppWrapperPodSetInfo) bool { return podtemplate.GetsItsNode(info.SchedulingGates) })
	if err := decoded.Errors[i]; err != nil {
		c.Problem = err.Error()
		o.components[i].confirmed = true
		return nil
	}
	kind := kinds.For(template.GroupVersionKind())
	c.APIVersion, c.Kind, c.ReportsEnd = template.GetAPIVersion(), template.GetKind(), kind.HasVerdict()
	c.Name = recordedName(o.aw, i)
	if c.Name == "" {
		c.Name = kinds.ObjectName(template, o.aw.UID, i)
	}
	if !podSetsAreRecorded(o.aw) {
		c.PodSets, c.Problem = plan(o.aw, i, template)
	}
	if c.Name == "" {
		c.Problem = "it has neither a name nor a generateName"
		o.components[i].confirmed = true
		return nil
	}
	return r.observeObject(ctx, o, i, kind)
}

// observeObject looks for component i in the cache, if its kind has one.
func (r *Reconciler) observeObject(ctx context.Context, o *observation, i int, kind kinds.Kind) error {
	coverage, err := r.watch(ctx, kind)
	if err != nil {
		return err
	}
	o.components[i] = component{kind: kind, coverage: coverage}
	if coverage != covered {
		return nil
	}
	found, err := get(ctx, r.cached, kind, types.NamespacedName{Namespace: o.aw.Namespace, Name: o.snapshot.Components[i].Name})
	if err != nil {
		return err
	}
	o.see(i, found)
	o.components[i].went = found == nil && r.sawItGo(o, i)
	return nil
}

// unadmitted applies the rules of admission in a controller whose webhooks are off. It cannot
// check the rights of the author, who is no longer known.
func unadmitted(limits admissionrules.Limits) func(admissionrules.Decoded) string {
	return func(decoded admissionrules.Decoded) string {
		problems := decoded.ValidateCreate(limits)
		if len(problems) == 0 {
			return ""
		}
		return "it is not valid, correct it and create it again: " + problems.ToAggregate().Error()
	}
}

// plan returns the pod sets that the status records for component i, or what is wrong with it.
func plan(aw *v1beta2.AppWrapper, i int, template *unstructured.Unstructured) (_ []v1beta2.AppWrapperPodSet, problem string) {
	if !canBeLabel(aw.Name) {
		return nil, fmt.Sprintf("the AppWrapper's name has %d characters, and a label value may have at most %d",
			len(aw.Name), validation.LabelValueMaxLength)
	}
	found, err := admissionrules.PodSets(aw.Spec.Components[i].DeclaredPodSets, template)
	if err != nil {
		return nil, err.Error()
	}
	return found, ""
}

// canBeLabel: the name is valid in the label that pods carry.
func canBeLabel(name string) bool {
	return len(validation.IsValidLabelValue(name)) == 0
}

// podSetsAreRecorded: from now on the pod sets are those of the status.
func podSetsAreRecorded(aw *v1beta2.AppWrapper) bool {
	return aw.Status.Phase != v1beta2.AppWrapperEmpty && len(aw.Status.ComponentStatus) == len(aw.Spec.Components)
}

// recordedName is the component's name in the status: an earlier reconcile promised it, or
// another AppWrapper controller had the API server generate it.
func recordedName(aw *v1beta2.AppWrapper, i int) string {
	if i < len(aw.Status.ComponentStatus) {
		return aw.Status.ComponentStatus[i].Name
	}
	return ""
}

// observePods looks for the pods in their cache.
func (r *Reconciler) observePods(ctx context.Context, o *observation) error {
	pods := &corev1.PodList{}
	err := r.cached.List(ctx, pods, client.InNamespace(o.aw.Namespace), client.MatchingFields{podsByAppWrapper: o.aw.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("cannot list the pods: %w", err)
	}
	o.cachedPods = pods.Items
	return r.seePods(ctx, o, pods.Items)
}

func (r *Reconciler) seePods(ctx context.Context, o *observation, pods []corev1.Pod) error {
	o.pods = withoutEarlierOnes(o.aw, pods)
	pods = o.pods
	o.snapshot.Pods = make([]lifecycle.Pod, len(pods))
	for i := range pods {
		o.snapshot.Pods[i] = o.podOf(&pods[i])
	}
	r.observeEvictions(o)
	r.heard.gone.observe(o)
	return r.markMigrations(ctx, o)
}

func exitCodes(pod *corev1.Pod) []int32 {
	var codes []int32
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil && ended.ExitCode != 0 {
			codes = append(codes, ended.ExitCode)
		}
	}
	return codes
}

// pollInterval is how long to wait at first where no event triggers a reconcile.
const pollInterval = time.Second

// The longest waits: for a watch to sync, and for what is removed.
const (
	longestWait    = time.Minute
	longestRemoval = 10 * time.Second
)

// unlabelledPollInterval is how often to check on a running component that lost our label.
const unlabelledPollInterval = 10 * time.Second

// nextLook is the one place where this controller polls: until a new watch has synced,
// while it removes an object that it does not watch, and while a component runs that lost
// our label, whose end no event would tell. The first two waits double: each is as long as it
// has waited already, in this phase and in this process.
func (o *observation) nextLook(d lifecycle.Decision, now, since time.Time) time.Duration {
	removal := condition(d.Status, v1beta2.DeletingResources)
	began := removal.LastTransitionTime.Time
	if o.snapshot.DeletedAt.After(began) {
		began = o.snapshot.DeletedAt
	}
	if (removal.Status == metav1.ConditionTrue || o.snapshot.Deleting) && (o.beginning || o.unwatched || o.unlabelled) {
		return pollAfter(now, longestRemoval, since, began)
	}
	if o.beginning {
		return pollAfter(now, longestWait, since, ptr.Deref(d.Status.PhaseTransitionTime, metav1.Time{}).Time)
	}
	if o.unlabelled && d.Status.Phase == v1beta2.AppWrapperRunning {
		return unlabelledPollInterval
	}
	return 0
}

// pollAfter is as long as the time since the later of two beginnings, within bounds.
func pollAfter(now time.Time, longest time.Duration, since, began time.Time) time.Duration {
	if began.After(since) {
		since = began
	}
	return min(max(now.Sub(since), pollInterval), longest)
}

// unsynced names the kind of a component whose watch has not synced for long. It is "" on all
// looks but one, of those that nextLook asks for.
func (o *observation) unsynced(next time.Duration) string {
	if !o.beginning || next < longestWait/2 || next >= longestWait {
		return ""
	}
	for i := range o.components {
		if o.components[i].coverage == beginning {
			return o.components[i].kind.GVK.Kind
		}
	}
	return ""
}
