// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// readOwners reads the metadata of all kinds between pods and what holds their quota.
func (r *reader) readOwners(ctx context.Context) error {
	m := &r.moment
	read := map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "Pod"}: true, workload.GroupVersion.WithKind(workload.AppWrapperKind): true,
	}
	var named []metav1.OwnerReference
	for i := range m.Pods {
		named = append(named, controller(&m.Pods[i])...)
	}
	for _, w := range m.Workloads {
		if slices.Contains(m.Namespaces, w.Namespace) {
			named = append(named, w.OwnerReferences...)
		}
	}
	for len(named) > 0 {
		kind := schema.FromAPIVersionAndKind(named[0].APIVersion, named[0].Kind)
		named = named[1:]
		if read[kind] {
			continue
		}
		read[kind] = true
		more, err := r.readOwnersOf(ctx, kind)
		if err != nil {
			return err
		}
		named = append(named, more...)
	}
	return nil
}

// readOwnersOf reads one kind and returns the controllers of its objects. An object of a kind
// that is not served does not exist. A kind that the user may not list is no reason to see
// nothing: anybody could then blind the audit by naming such an owner.
func (r *reader) readOwnersOf(ctx context.Context, kind schema.GroupVersionKind) ([]metav1.OwnerReference, error) {
	if _, err := r.api.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		return nil, nil
	}
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	var above []metav1.OwnerReference
	err := clusterstate.Each(ctx, r.api, objects, func(object *metav1.PartialObjectMetadata) {
		if object.Namespace == "" || slices.Contains(r.moment.Namespaces, object.Namespace) {
			object.SetGroupVersionKind(kind)
			r.moment.Owners = append(r.moment.Owners, *object)
			above = append(above, controller(object)...)
		}
	})
	if apierrors.IsForbidden(err) {
		r.moment.Unread[kind.Kind] = fmt.Sprintf("you may not list %s", resourceOf(err))
		return nil, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cannot read the cluster: %w", err)
	}
	return above, nil // what is not found is not served any more
}

func controller(o metav1.Object) []metav1.OwnerReference {
	if c := metav1.GetControllerOf(o); c != nil {
		return []metav1.OwnerReference{*c}
	}
	return nil
}
