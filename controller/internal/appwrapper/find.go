// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// podKind is special: pods are cached typed, for their phases, and not once more.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// find returns the object of component i, or nil where there is none, whoever owns
// it. The cache is the first witness where there is one; where it does not have an
// object of ours (it may still have that of a namesake), the API server is asked if
// the status leaves open that ours exists.
func (r *Reconciler) find(ctx context.Context, o *observation, kind kinds.Kind, i int) (client.Object, error) {
	key := types.NamespacedName{Namespace: o.aw.Namespace, Name: o.snapshot.Components[i].Name}
	coverage, err := r.watch(ctx, kind)
	if err != nil {
		return nil, err
	}
	var cached client.Object
	if coverage == covered {
		cached, err = get(ctx, r.cached, kind, key)
		if err != nil || r.suffices(o, i, cached) {
			return cached, err
		}
	}
	if !belongsTo(cached, o.aw) && !mayExist(deployedCondition(o.aw, i)) {
		return nil, nil
	}
	found, err := r.findLive(ctx, o, kind, i, coverage)
	o.snapshot.Components[i].Terminating = o.creating(i) && replaces(found, cached, o.aw)
	return found, err
}

// suffices: what the cache has is ours, and there is no reason to ask whether it is still so.
func (r *Reconciler) suffices(o *observation, i int, cached client.Object) bool {
	return belongsTo(cached, o.aw) && !o.creating(i) && !o.dooms(cached) && !r.mayHaveGone(o, i, cached)
}

// dooms: that a component is going ends the work for good, so it is not believed of a cache
// that may have gone back to the attempt before.
func (o *observation) dooms(cached client.Object) bool {
	return o.aw.Status.Phase == v1beta2.AppWrapperRunning && !cached.GetDeletionTimestamp().IsZero()
}

// creating: the status leaves open whether component i was created in this attempt. That
// of the attempt before had the same name and owner, so a cache that has not heard of its
// end would have us go on without anything.
func (o *observation) creating(i int) bool {
	deployed := deployedCondition(o.aw, i)
	return o.aw.Status.Phase == v1beta2.AppWrapperResuming && (deployed == nil || deployed.Status != metav1.ConditionTrue)
}

// replaces: what was found is ours, and so is what the cache has, which came before it. As
// long as the cache is that old, it would tell how the attempt before ended: the component
// counts as one that is going, until the cache hears of its end, which wakes us.
func replaces(found, cached client.Object, aw *v1beta2.AppWrapper) bool {
	return belongsTo(found, aw) && belongsTo(cached, aw) && found.GetUID() != cached.GetUID()
}

// mayHaveGone: what is to be removed may be gone already, and a cache that cannot list its
// kind any more would never hear of it. So there is a question before it is deleted and
// when force would be used, and what was found gone is not back because a cache has it.
func (r *Reconciler) mayHaveGone(o *observation, i int, cached client.Object) bool {
	if deployed := deployedCondition(o.aw, i); deployed != nil && deployed.Reason == v1beta2.ReasonComponentDeleted {
		return true
	}
	removal := meta.FindStatusCondition(o.aw.Status.Conditions, string(v1beta2.DeletingResources))
	if removal == nil || removal.Status != metav1.ConditionTrue {
		return false
	}
	force := removal.LastTransitionTime.Add(o.snapshot.Policy.ForcefulDeletionGrace)
	return cached.GetDeletionTimestamp().IsZero() || !r.now().Before(force)
}

// findLive asks the API server for what may exist.
func (r *Reconciler) findLive(ctx context.Context, o *observation, kind kinds.Kind, i int, c coverage) (client.Object, error) {
	name := o.snapshot.Components[i].Name
	found, err := get(ctx, r.live, kind, types.NamespacedName{Namespace: o.aw.Namespace, Name: name})
	if deployed := deployedCondition(o.aw, i); apierrors.IsForbidden(err) && deployed != nil && deployed.Status != metav1.ConditionTrue {
		// Never seen and not ours to see: the attempt to create it will tell why.
		return nil, nil
	}
	if apierrors.IsForbidden(err) && o.goesOn(kind) {
		return r.unseen(o, kind, i), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get %s %s: %w", kind.GVK.Kind, name, err)
	}
	o.rely(c, found)
	return found, nil
}

// goesOn: what is not ours to see must not keep the rest alive, nor does it tell how the
// work fares.
func (o *observation) goesOn(kind kinds.Kind) bool {
	removing := meta.IsStatusConditionTrue(o.aw.Status.Conditions, string(v1beta2.DeletingResources))
	return o.snapshot.Deleting || o.snapshot.Suspend || removing || !kind.HasVerdict()
}

// unseen stands for a component that was created and that the controller may not get any
// more. When the AppWrapper goes, the garbage collector removes what
// makes no pods, and nobody has to wait for it.
func (r *Reconciler) unseen(o *observation, kind kinds.Kind, i int) client.Object {
	if o.snapshot.Deleting && kind.MakesNoPods() {
		return nil
	}
	o.snapshot.Components[i].Unreadable = true
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind.GVK)
	object.SetName(o.snapshot.Components[i].Name)
	object.SetNamespace(o.aw.Namespace)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(o.aw, v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))})
	return object
}

// rely remembers what cannot be relied upon to wake us. Caches hear only of what has our label.
func (o *observation) rely(c coverage, found client.Object) {
	o.beginning = o.beginning || c == beginning
	o.unwatched = o.unwatched || (c == uncovered && found != nil)
	if c == covered && belongsTo(found, o.aw) {
		_, labelled := found.GetLabels()[v1beta2.AppWrapperLabel]
		o.unlabelled = o.unlabelled || !labelled
	}
}

// belongsTo tells whether the AppWrapper, and not an earlier one of its name or something
// of another kind, controls the object, if there is one.
func belongsTo(object client.Object, aw *v1beta2.AppWrapper) bool {
	if object == nil {
		return false
	}
	owner := controllingAppWrapper(object)
	return owner != nil && owner.UID == aw.UID
}

// orphaned: the AppWrapper is deleted with --cascade=orphan, and the garbage collector has
// taken our ownership of the component away. So its events do not say whom to wake.
func (o *observation) orphaned(object client.Object) bool {
	if object == nil || !o.snapshot.Deleting || metav1.GetControllerOf(object) != nil || object.GetLabels()[v1beta2.AppWrapperLabel] != o.aw.Name {
		return false
	}
	o.unwatched = true
	return true
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

// get returns nil where there is no such object, or no such kind. What a cache has is not
// copied: nobody changes it.
func get(ctx context.Context, reader client.Reader, kind kinds.Kind, key types.NamespacedName) (client.Object, error) {
	object := objectOf(kind)
	err := reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return object, err
}

// objectOf is what objects of a kind are read into: as little as serves.
func objectOf(kind kinds.Kind) client.Object {
	if kind.GVK == podKind {
		return &corev1.Pod{}
	}
	if kind.HasVerdict() {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind.GVK)
		return object
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind.GVK)
	return object
}

func verdict(kind kinds.Kind, object client.Object) kinds.Verdict {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		return kind.Verdict(o)
	case *corev1.Pod:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return kinds.Unknown // a pod has a form in JSON
		}
		return kind.Verdict(&unstructured.Unstructured{Object: content})
	}
	return kinds.Unknown
}
