// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/given"
)

// apiServer is one namespace of an API server. A thousand lives need it because the fake client
// takes milliseconds for a request. It has its own clock, and features that the fake client
// lacks: UIDs, preconditions on them, and kubelets that take a while to stop a pod.
type apiServer struct {
	client.Client // nil: only the methods here are used
	now           func() time.Time
	objects       []client.Object // stored objects are replaced, never modified
	versions      int
	uids          int
	// refuse may return an error for the creation of an object.
	refuse func(client.Object) error
	// heard is called for every change; before is nil for a creation, after for a removal.
	heard func(before, after client.Object)
}

func kindOf(object client.Object) schema.GroupVersionKind {
	switch object.(type) {
	case *v1beta2.AppWrapper:
		return v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind)
	case *corev1.Pod:
		return podKind
	case *corev1.Node:
		return nodeKind
	}
	return object.GetObjectKind().GroupVersionKind()
}

func (s *apiServer) find(kind schema.GroupVersionKind, name string) client.Object {
	i := slices.IndexFunc(s.objects, func(o client.Object) bool { return kindOf(o) == kind && o.GetName() == name })
	if i < 0 {
		return nil
	}
	return s.objects[i]
}

func (s *apiServer) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range s.objects {
		if pod, ok := object.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

func notFound(kind schema.GroupVersionKind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, name)
}

func (s *apiServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	stored := s.find(kindOf(into), key.Name)
	if stored == nil {
		return notFound(kindOf(into), key.Name)
	}
	copyInto(stored, into)
	return nil
}

func copyInto(stored, into client.Object) {
	switch into := into.(type) {
	case *v1beta2.AppWrapper:
		stored.(*v1beta2.AppWrapper).DeepCopyInto(into)
	case *corev1.Pod:
		stored.(*corev1.Pod).DeepCopyInto(into)
	case *corev1.Node:
		stored.(*corev1.Node).DeepCopyInto(into)
	case *unstructured.Unstructured:
		stored.(*unstructured.Unstructured).DeepCopyInto(into)
	case *metav1.PartialObjectMetadata:
		into.Name, into.Namespace, into.UID = stored.GetName(), stored.GetNamespace(), stored.GetUID()
		into.ResourceVersion, into.DeletionTimestamp = stored.GetResourceVersion(), stored.GetDeletionTimestamp()
		into.OwnerReferences, into.Labels = stored.GetOwnerReferences(), stored.GetLabels()
	}
}

// List supports pods, and AppWrappers by what they avoid.
func (s *apiServer) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var wanted client.ListOptions
	wanted.ApplyOptions(options)
	if all, ok := list.(*v1beta2.AppWrapperList); ok {
		all.Items = nil
		if aw := s.theOne(); aw != nil && len(avoidanceOfAppWrapper(aw)) > 0 {
			all.Items = append(all.Items, *aw)
		}
		return nil
	}
	pods := list.(*corev1.PodList)
	pods.Items = nil
	for _, pod := range s.pods() {
		named := fields.Set{podsByAppWrapper: pod.Labels[v1beta2.AppWrapperLabel], podsByNode: pod.Spec.NodeName}
		if (wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(pod.Labels))) &&
			(wanted.FieldSelector == nil || wanted.FieldSelector.Matches(named)) {
			pods.Items = append(pods.Items, *pod.DeepCopy())
		}
	}
	return nil
}

func (s *apiServer) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	if review, ok := object.(*authorizationv1.SelfSubjectAccessReview); ok {
		review.Status.Allowed = true
		return nil
	}
	if s.find(kindOf(object), object.GetName()) != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: kindOf(object).Kind}, object.GetName())
	}
	if err := s.refuse(object); err != nil {
		return err
	}
	if verbOf(options) == "try" {
		return nil
	}
	s.uids++
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	object.SetCreationTimestamp(metav1.Time{Time: s.now()})
	s.store(nil, object)
	return nil
}

// store replaces before with after.
func (s *apiServer) store(before, after client.Object) {
	s.versions++
	after.SetResourceVersion(fmt.Sprint(s.versions))
	stored := after.DeepCopyObject().(client.Object)
	if before == nil {
		s.objects = append(s.objects, stored)
	} else {
		s.objects[slices.Index(s.objects, before)] = stored
	}
	s.heard(before, stored)
}

// change updates an object on behalf of another client.
func (s *apiServer) change(before client.Object, change func(client.Object)) {
	after := before.DeepCopyObject().(client.Object)
	change(after)
	s.replace(before, after)
}

// replace stores an object, or removes it if it is being deleted and has no finalizers.
func (s *apiServer) replace(before, after client.Object) {
	if !after.GetDeletionTimestamp().IsZero() && len(after.GetFinalizers()) == 0 && kindOf(after) != podKind {
		s.remove(before)
		return
	}
	s.store(before, after)
}

func (s *apiServer) remove(object client.Object) {
	i := slices.Index(s.objects, object)
	s.objects = slices.Delete(s.objects, i, i+1)
	s.heard(object, nil)
}

func (s *apiServer) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	var how client.DeleteOptions
	how.ApplyOptions(options)
	stored := s.find(kindOf(object), object.GetName())
	if stored == nil {
		return notFound(kindOf(object), object.GetName())
	}
	if p := how.Preconditions; p != nil && p.UID != nil && *p.UID != stored.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(object).Kind}, object.GetName(), fmt.Errorf("the UID differs"))
	}
	forced := how.GracePeriodSeconds != nil && *how.GracePeriodSeconds == 0
	switch {
	case kindOf(object) == podKind && forced:
		s.remove(stored)
	case stored.GetDeletionTimestamp().IsZero():
		now := metav1.NewTime(s.now())
		s.change(stored, func(o client.Object) { o.SetDeletionTimestamp(&now) })
	}
	return nil
}

// Patch supports only the metadata of AppWrappers.
func (s *apiServer) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return s.merge(object, patch, func(after *v1beta2.AppWrapper, status v1beta2.AppWrapperStatus) {
		after.Status = status
	})
}

// patchStatus supports only AppWrappers.
func (s *apiServer) patchStatus(object client.Object, patch client.Patch) error {
	return s.merge(object, patch, func(*v1beta2.AppWrapper, v1beta2.AppWrapperStatus) {})
}

func (s *apiServer) merge(object client.Object, patch client.Patch, restore func(*v1beta2.AppWrapper, v1beta2.AppWrapperStatus)) error {
	stored := s.find(kindOf(object), object.GetName())
	if stored == nil {
		return notFound(kindOf(object), object.GetName())
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	after := &v1beta2.AppWrapper{}
	if err := mergeJSON(stored, data, after); err != nil {
		return err
	}
	if after.ResourceVersion != stored.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: v1beta2.AppWrapperKind}, object.GetName(), fmt.Errorf("it has changed"))
	}
	restore(after, stored.(*v1beta2.AppWrapper).Status)
	s.replace(stored, after)
	copyInto(after, object)
	return nil
}

func mergeJSON(before any, patch []byte, after any) error {
	document, change := map[string]any{}, map[string]any{}
	text, err := json.Marshal(before)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return err
	}
	fakeapiserver.Merge(document, change)
	if text, err = json.Marshal(document); err != nil {
		return err
	}
	return json.Unmarshal(text, after)
}

func (s *apiServer) IsObjectNamespaced(runtime.Object) (bool, error) {
	return true, nil
}

// theOne returns the AppWrapper of a life, or nil if it is gone.
func (s *apiServer) theOne() *v1beta2.AppWrapper {
	aw, _ := s.find(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), given.AppWrapper("a").Build().Name).(*v1beta2.AppWrapper)
	return aw
}
