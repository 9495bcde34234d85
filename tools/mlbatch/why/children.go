// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// mostChildren is how many objects with warnings are read, to see whether they belong to the work.
const mostChildren = 3

// readChildren looks whose the objects are that warnings are about: a Deployment's pods are refused to its ReplicaSet,
// a JobSet's to its Jobs, a RayJob's to its RayCluster. Names alone do not say that.
func (r *gathering) readChildren(ctx context.Context) {
	warned := r.Warned()
	for _, about := range warned[max(0, len(warned)-mostChildren):] {
		made := &metav1.PartialObjectMetadata{}
		made.SetGroupVersionKind(about.GroupVersionKind())
		err := r.client.Get(ctx, r.key(about.Name), made)
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		case err != nil:
			r.unread(err, about.Kind+" "+about.Name+", which has a warning")
		case made.UID == about.UID && r.owned(made.OwnerReferences):
			r.Children = append(r.Children, explain.Child{Kind: about.Kind, Name: about.Name, UID: about.UID})
		}
	}
}

// owned reports whether one of the owners is a wrapped resource, the bare job, or a pod of theirs.
func (r *gathering) owned(owners []metav1.OwnerReference) bool {
	for _, o := range owners {
		for _, by := range r.Owners() {
			if o.Kind == by.Kind && o.Name == by.Name {
				return true
			}
		}
		for i := range r.Pods {
			if o.UID == r.Pods[i].UID {
				return true
			}
		}
	}
	return false
}
