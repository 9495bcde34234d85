// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups="",resources=limitranges,verbs=list
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=get

// readSurroundings finds out what the API server will add to the pods of a new AppWrapper in a namespace.
type readSurroundings func(ctx context.Context, namespace string, decoded admissionrules.Decoded) (admissionrules.Surroundings, error)

// surroundingsFrom reads only what these pods depend on, which is nothing for most that say what they request. Pods
// that nobody can count are not accepted: unlike with a namespace, a failure to read is an error.
func surroundingsFrom(reader client.Reader) readSurroundings {
	return func(ctx context.Context, namespace string, decoded admissionrules.Decoded) (s admissionrules.Surroundings, err error) {
		limitRanges, classes := decoded.DependsOnSurroundings()
		if limitRanges {
			found := &corev1.LimitRangeList{}
			if err := reader.List(ctx, found, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
				return s, fmt.Errorf("cannot read the LimitRanges of namespace %s: %w", namespace, err)
			}
			s.LimitRanges = found.Items
		}
		for _, name := range classes {
			class := &nodev1.RuntimeClass{}
			err := reader.Get(ctx, client.ObjectKey{Name: name}, class)
			if client.IgnoreNotFound(err) != nil {
				return s, fmt.Errorf("cannot read RuntimeClass %s: %w", name, err)
			}
			if err == nil && class.Overhead != nil {
				if s.Overheads == nil {
					s.Overheads = map[string]corev1.ResourceList{}
				}
				s.Overheads[name] = class.Overhead.PodFixed
			}
		}
		return s, nil
	}
}

// addExtras makes Kueue count all that the pods of a new AppWrapper will request.
func (d *defaulter) addExtras(ctx context.Context, namespace string, aw *v1beta2.AppWrapper) error {
	if !aw.ManagedByThisController() {
		return nil
	}
	surroundings, err := d.surroundings(ctx, namespace, admissionrules.Decode(aw))
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return admissionrules.AddExtras(aw, surroundings)
}

// uncounted refuses pods that request more than Kueue would count.
func (v *validator) uncounted(ctx context.Context, decoded admissionrules.Decoded) field.ErrorList {
	surroundings, err := v.surroundings(ctx, decoded.AppWrapper.Namespace, decoded)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec", "components"), err)}
	}
	return decoded.ValidateCounted(surroundings)
}
