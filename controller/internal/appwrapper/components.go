// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"

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
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// podKind is special: pods have a typed cache, and no second one.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// component is the shell's half of a lifecycle.Component.
type component struct {
	kind     kinds.Kind
	coverage coverage
	// object is the component if it exists and belongs to the AppWrapper, else nil.
	object client.Object
	// confirmed: it was read from the API server, or there is nothing to read.
	confirmed bool
	// went: it need not be asked for, because a watch has told that it is gone.
	went bool
	// refuted: there was nothing to delete, so the cache is late.
	refuted bool
}

// see records what was found under the name of component i; nil is nothing.
func (o *observation) see(i int, found client.Object) {
	s, c := &o.snapshot.Components[i], &o.components[i]
	orphan := o.snapshot.Deleting && isOrphan(found, o.aw)
	o.unwatched = o.unwatched || orphan // its events do not name an owner to reconcile
	c.object = nil
	s.Exists, s.Unreadable, s.Terminating, s.Finalizers = false, false, false, nil
	report{}.into(s)
	if belongsTo(found, o.aw) || orphan {
		c.object = found
		s.Exists = true
		s.Terminating = !found.GetDeletionTimestamp().IsZero()
		s.Finalizers = found.GetFinalizers()
		reportOf(c.kind, found).into(s)
	}
	for p := range o.pods { // to which component they belong may depend on the object
		o.snapshot.Pods[p].Component = o.componentOf(&o.pods[p])
	}
}

// belongsTo tells whether this AppWrapper controls the object, and not an earlier one of its
// name or something of another kind.
func belongsTo(object client.Object, aw *v1beta2.AppWrapper) bool {
	if object == nil {
		return false
	}
	owner := controllingAppWrapper(object)
	return owner != nil && owner.UID == aw.UID
}

// isOrphan: the AppWrapper was deleted with --cascade=orphan, and the garbage collector has
// taken our ownership of the component away.
func isOrphan(object client.Object, aw *v1beta2.AppWrapper) bool {
	return object != nil && metav1.GetControllerOf(object) == nil && object.GetLabels()[v1beta2.AppWrapperLabel] == aw.Name
}

// get returns nil if there is no such object or no such kind. Objects of a cache are not
// copied, because nobody changes them.
func get(ctx context.Context, reader client.Reader, kind kinds.Kind, key types.NamespacedName) (client.Object, error) {
	object := objectOf(kind)
	err := reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return object, err
}

// objectOf is what objects of a kind are read into: metadata only, if that is enough.
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
	return reportOf(kind, object).verdict
}

// report is what a component says of itself.
type report struct {
	verdict kinds.Verdict
	final   string
	ended   kinds.Ended
}

func (r report) into(s *lifecycle.Component) {
	s.Verdict, s.Final, s.Ended = r.verdict, r.final, r.ended
}

func reportOf(kind kinds.Kind, object client.Object) report {
	content, ok := object.(*unstructured.Unstructured)
	if pod, isPod := object.(*corev1.Pod); isPod {
		if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod); err == nil { // a pod has a form in JSON
			content, ok = &unstructured.Unstructured{Object: fields}, true
		}
	}
	if !ok {
		return report{}
	}
	return report{verdict: kind.Verdict(content), final: kind.Final(content), ended: kind.Ended(content)}
}
