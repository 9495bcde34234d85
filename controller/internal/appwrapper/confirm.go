// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// decide decides from the caches. Before a decision that no later one can take back it reads
// from the API server what the decision rests on, and decides again, until there is nothing
// left to read:
//
//   - a component whose cached state contradicts the status (inDoubt);
//   - a component that is about to be created or deleted;
//   - before an irreversible verdict: each component that it rests on, and the pods.
//
// Before the pods it asks whether devices compute, if that would hold the decision back. So an AppWrapper that is
// held back costs no reads.
//
// The AppWrapper itself is confirmed by the resourceVersion of every write to it, and by
// current before a component is created or deleted.
func (r *Reconciler) decide(ctx context.Context, o *observation, now time.Time) (lifecycle.Decision, error) {
	for {
		d := lifecycle.Decide(o.snapshot, now)
		again, err := r.confirm(ctx, o, d)
		if err != nil || !again {
			return d, err
		}
	}
}

// confirm reads what d rests on and tells whether it read anything. Components come first:
// with them the decision may no longer depend on the pods.
func (r *Reconciler) confirm(ctx context.Context, o *observation, d lifecycle.Decision) (read bool, err error) {
	for i := range o.components {
		if !o.inDoubt(i, d) {
			continue
		}
		read = true
		if err := r.readComponent(ctx, o, i); err != nil {
			return read, err
		}
	}
	if read {
		return true, nil
	}
	if r.activity != nil && d.Confirm && o.snapshot.Activity == lifecycle.ActivityNotAsked {
		o.snapshot.Activity = r.activity(ctx, o.aw.UID, o.aw.Namespace, o.runningPods())
		return true, nil
	}
	if !o.podsInDoubt(d) {
		return false, nil
	}
	return true, r.readPods(ctx, o)
}

// runningPods are those whose devices may compute.
func (o *observation) runningPods() []string {
	var names []string
	for i := range o.pods {
		if o.pods[i].Status.Phase == corev1.PodRunning {
			names = append(names, o.pods[i].Name)
		}
	}
	return names
}

// inDoubt: component i has to be read from the API server before d is carried out.
func (o *observation) inDoubt(i int, d lifecycle.Decision) bool {
	if o.components[i].confirmed || o.components[i].went {
		return false
	}
	seen, deployed := o.snapshot.Components[i], deployedCondition(o.aw, i)
	switch {
	case o.components[i].refuted:
		return true
	case !seen.Exists:
		return mayExist(deployed) && !o.untried || o.mayBeStray(i, d) // only the API server is believed to have none
	case deployed != nil && deployed.Reason == v1beta2.ReasonComponentDeleted:
		return true // it is gone, and the cache lags behind
	case o.creating(deployed):
		return true // it may be that of the previous attempt, which had the same name and owner
	}
	return o.restsOn(i, d)
}

// restsOn: the cache has component i, and d must not rest on that. An ordinary deletion may: it
// names the UID, so the API server tells if it is another one.
func (o *observation) restsOn(i int, d lifecycle.Decision) bool {
	seen := o.snapshot.Components[i]
	switch {
	case d.Effect == lifecycle.ForceDelete && slices.Contains(d.Targets, i):
		return true
	case succeeded(d.Status, i) && !succeeded(o.snapshot.Status, i):
		return !o.ofThisAttempt(i)
	}
	return o.irreversible(d) && (seen.Terminating || seen.Verdict == kinds.Failed)
}

// creating: the status leaves open whether a component was created in this attempt.
func (o *observation) creating(deployed *metav1.Condition) bool {
	return o.snapshot.Status.Phase == v1beta2.AppWrapperResuming && (deployed == nil || deployed.Status != metav1.ConditionTrue)
}

// podsInDoubt: the pods have to be read from the API server before d is carried out. If
// nothing is deployed or being removed and the cache has no pod, there is none; nor is there any
// if the AppWrapper's name cannot be a label, and the API server would refuse the selector. Nor does it matter which
// are left of work that is over for good: when it succeeded, the API server had none that uses anything.
func (o *observation) podsInDoubt(d lifecycle.Decision) bool {
	conditions := o.snapshot.Status.Conditions
	possible := len(o.pods) > 0 || meta.IsStatusConditionTrue(conditions, string(v1beta2.ResourcesDeployed)) ||
		meta.IsStatusConditionTrue(conditions, string(v1beta2.DeletingResources))
	return !o.podsConfirmed && possible && canBeLabel(o.aw.Name) && o.irreversible(d) && !o.overForGood()
}

// overForGood: this controller has seen all components succeed, and nothing makes pods for them since. What another
// controller has seen counts for nothing.
func (o *observation) overForGood() bool {
	for i := range o.components {
		kind := o.components[i].kind
		if !kind.SuccessIsFinal() || !kind.MakesNoPods() && !succeeded(o.snapshot.Status, i) {
			return false
		}
	}
	return o.snapshot.Status.Phase == v1beta2.AppWrapperSucceeded
}

// irreversible: no later decision takes d back. It ends an attempt or the work, gives quota
// back, reports that nothing is left, removes our finalizer, or uses force.
func (o *observation) irreversible(d lifecycle.Decision) bool {
	if d.Effect == lifecycle.RemoveFinalizer || d.Effect == lifecycle.ForceDelete {
		return true
	}
	if d.Moved(o.snapshot) {
		switch d.Status.Phase {
		case v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed, v1beta2.AppWrapperResetting:
			return true
		}
	}
	for _, promise := range []v1beta2.AppWrapperCondition{v1beta2.QuotaReserved, v1beta2.ResourcesDeployed, v1beta2.DeletingResources} {
		before, after := o.snapshot.Status.Conditions, d.Status.Conditions
		if meta.IsStatusConditionTrue(before, string(promise)) && !meta.IsStatusConditionTrue(after, string(promise)) {
			return true
		}
	}
	return false
}

// readComponent asks the API server for component i.
func (r *Reconciler) readComponent(ctx context.Context, o *observation, i int) error {
	c, name := &o.components[i], o.snapshot.Components[i].Name
	found, err := get(ctx, r.live, c.kind, types.NamespacedName{Namespace: o.aw.Namespace, Name: name})
	c.confirmed = true
	deployed := deployedCondition(o.aw, i)
	switch {
	case apierrors.IsForbidden(err) && deployed != nil && deployed.Status != metav1.ConditionTrue:
		o.see(i, nil) // never seen and not readable: the attempt to create it reports why
	case apierrors.IsForbidden(err) && o.canDoWithout(c.kind):
		o.seeUnreadable(i)
	case err != nil:
		return fmt.Errorf("cannot get %s %s: %w", c.kind.GVK.Kind, name, err)
	default:
		o.confirmed(i, found)
		if found == nil {
			o.seeLast(i, r.lastState(c.kind, types.NamespacedName{Namespace: o.aw.Namespace, Name: name}))
		}
	}
	return r.readFailedJob(ctx, o, i)
}

// readFailedJob asks the API server why component i has failed, if that only names the Job.
func (r *Reconciler) readFailedJob(ctx context.Context, o *observation, i int) error {
	failed, ok := o.components[i].object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	kind, name := o.components[i].kind.FailedBy(failed)
	if name == "" {
		return nil
	}
	job, err := get(ctx, r.live, kind, types.NamespacedName{Namespace: o.aw.Namespace, Name: name})
	switch {
	case apierrors.IsForbidden(err): // an administrator may have taken the right away: then nobody knows more
	case err != nil:
		return fmt.Errorf("cannot get Job %s: %w", name, err)
	case job != nil && metav1.IsControlledBy(job, failed) && o.snapshot.Components[i].Final == "":
		o.snapshot.Components[i].Final = reportOf(kind, job).final
	}
	return nil
}

// confirmed records what the API server has, or has just created, under the name of component i.
func (o *observation) confirmed(i int, found client.Object) {
	o.components[i].confirmed, o.components[i].refuted = true, false
	o.see(i, found)
	o.noteWakeUps(&o.components[i], found)
}

// ofThisAttempt: component i was created by this attempt, so what it reports about its end is
// believed of the cache, too.
func (o *observation) ofThisAttempt(i int) bool {
	object := o.components[i].object
	return object != nil && o.namesThisAttempt(object)
}

// namesThisAttempt: attempts are named by seconds. One that began in the second in which the last
// was removed may have the name of the last.
func (o *observation) namesThisAttempt(object client.Object) bool {
	began := condition(o.aw.Status, v1beta2.ResourcesDeployed).LastTransitionTime
	removed := condition(o.aw.Status, v1beta2.DeletingResources).LastTransitionTime
	return object.GetAnnotations()[v1beta2.AttemptAnnotation] == attempt(o.aw) && removed.Unix() < began.Unix()
}

// seeLast adds the verdict of a component that is gone, if this attempt created it: one of the
// attempt before had the same name and owner.
func (o *observation) seeLast(i int, last client.Object) {
	if last != nil && belongsTo(last, o.aw) && o.namesThisAttempt(last) {
		reportOf(o.components[i].kind, last).into(&o.snapshot.Components[i])
	}
}

// sawItGo: a watch has told that component i, which had succeeded for good, is gone. It is not created again. Or it
// has only lost our label, for watches cannot tell; then it uses nothing, and goes when the AppWrapper has gone. So
// this counts only while that is being deleted.
func (r *Reconciler) sawItGo(o *observation, i int) bool {
	kind := o.components[i].kind
	if !o.snapshot.Deleting || o.snapshot.Status.Phase != v1beta2.AppWrapperSucceeded || !succeeded(o.snapshot.Status, i) || !kind.SuccessIsFinal() {
		return false
	}
	last := r.lastState(kind, types.NamespacedName{Namespace: o.aw.Namespace, Name: o.snapshot.Components[i].Name})
	return last != nil && belongsTo(last, o.aw) && o.namesThisAttempt(last) && verdict(kind, last) == kinds.Succeeded
}

// canDoWithout: a component that the controller may not read must not block the removal of
// the others, and one whose kind has no verdict says nothing about the work.
func (o *observation) canDoWithout(kind kinds.Kind) bool {
	removing := meta.IsStatusConditionTrue(o.aw.Status.Conditions, string(v1beta2.DeletingResources))
	return o.snapshot.Deleting || o.snapshot.Suspend || removing || !kind.HasVerdict()
}

// seeUnreadable assumes that a component exists that was created and that the controller may
// no longer get. If the AppWrapper is being deleted and the component makes no pods, it is
// left to the garbage collector.
func (o *observation) seeUnreadable(i int) {
	if o.snapshot.Deleting && o.components[i].kind.MakesNoPods() {
		o.see(i, nil)
		return
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(o.components[i].kind.GVK)
	object.SetName(o.snapshot.Components[i].Name)
	object.SetNamespace(o.aw.Namespace)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(o.aw, v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))})
	o.see(i, object)
	o.snapshot.Components[i].Unreadable = true
}

// noteWakeUps remembers which changes trigger no reconcile. Caches hold only what has our label.
func (o *observation) noteWakeUps(c *component, found client.Object) {
	o.beginning = o.beginning || c.coverage == beginning
	o.unwatched = o.unwatched || (c.coverage == uncovered && found != nil)
	if c.coverage == covered && belongsTo(found, o.aw) {
		_, labelled := found.GetLabels()[v1beta2.AppWrapperLabel]
		o.unlabelled = o.unlabelled || !labelled
	}
}

// readPods asks the API server for the pods.
func (r *Reconciler) readPods(ctx context.Context, o *observation) error {
	pods := &corev1.PodList{} // decoding into the listed items would change the cache
	err := r.live.List(ctx, pods, client.InNamespace(o.aw.Namespace), client.MatchingLabels{v1beta2.AppWrapperLabel: o.aw.Name})
	if err != nil {
		return fmt.Errorf("cannot list the pods: %w", err)
	}
	for i := range pods.Items {
		pods.Items[i].Status.Conditions = slimPodConditions(&pods.Items[i])
	}
	o.podsConfirmed = true
	return r.seePods(ctx, o, pods.Items)
}

// mayBeExcused: by what is known, the work has failed by itself. But pods are gone that the cache believes
// to run. Once it hears why, that wakes the AppWrapper.
func (o *observation) mayBeExcused(d lifecycle.Decision) bool {
	pays := d.Status.Retries > o.snapshot.Status.Retries || d.Status.Phase == v1beta2.AppWrapperFailed
	if !pays || !d.Moved(o.snapshot) {
		return false
	}
	present := map[types.UID]bool{}
	for i := range o.pods {
		present[o.pods[i].UID] = true
	}
	return slices.ContainsFunc(o.cachedPods, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero() && !present[p.UID]
	})
}

// succeeded: the status says that component i has done its work in this attempt.
func succeeded(status v1beta2.AppWrapperStatus, i int) bool {
	return i < len(status.ComponentStatus) &&
		meta.IsStatusConditionTrue(status.ComponentStatus[i].Conditions, string(v1beta2.ComponentSucceeded))
}

func deployedCondition(aw *v1beta2.AppWrapper, i int) *metav1.Condition {
	if i >= len(aw.Status.ComponentStatus) {
		return nil
	}
	return meta.FindStatusCondition(aw.Status.ComponentStatus[i].Conditions, string(v1beta2.ResourcesDeployed))
}

// mayExist tells whether the condition leaves open that its component exists. An
// error is no proof of the contrary: the answer to a create may get lost.
func mayExist(deployed *metav1.Condition) bool {
	return deployed != nil &&
		(deployed.Status != metav1.ConditionFalse || deployed.Reason == v1beta2.ReasonComponentCreationErrored)
}
