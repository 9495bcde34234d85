// SPDX-License-Identifier: Apache-2.0

// Package given builds objects for tests. They are complete and ordinary, and a method changes
// what matters to a test.
package given

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Namespace is the namespace of objects unless a test says otherwise.
const Namespace = "team-a"

// AppWrapperBuilder builds an AppWrapper.
type AppWrapperBuilder struct {
	aw v1beta2.AppWrapper
}

// AppWrapper is a suspended AppWrapper without components, as Kueue's webhook leaves it.
func AppWrapper(name string) *AppWrapperBuilder {
	return &AppWrapperBuilder{aw: v1beta2.AppWrapper{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: v1beta2.AppWrapperKind},
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: Namespace,
			UID:       types.UID("uid-of-" + name),
		},
		Spec: v1beta2.AppWrapperSpec{Suspend: true},
	}}
}

// ManagedBy sets managedBy to the name of a controller.
func (b *AppWrapperBuilder) ManagedBy(controller string) *AppWrapperBuilder {
	b.aw.Spec.ManagedBy = &controller
	return b
}

// Unsuspended lets the controller deploy it.
func (b *AppWrapperBuilder) Unsuspended() *AppWrapperBuilder {
	b.aw.Spec.Suspend = false
	return b
}

// WithFinalizer adds the controller's finalizer.
func (b *AppWrapperBuilder) WithFinalizer() *AppWrapperBuilder {
	b.aw.Finalizers = append(b.aw.Finalizers, v1beta2.AppWrapperFinalizer)
	return b
}

// With adds components.
func (b *AppWrapperBuilder) With(components ...*ComponentBuilder) *AppWrapperBuilder {
	for _, c := range components {
		b.aw.Spec.Components = append(b.aw.Spec.Components, c.Build())
	}
	return b
}

// InPhase sets the phase, the pod sets that its components declare, and a status for each
// component.
func (b *AppWrapperBuilder) InPhase(phase v1beta2.AppWrapperPhase) *AppWrapperBuilder {
	b.aw.Status.Phase = phase
	b.aw.Status.ComponentStatus = nil
	for _, c := range b.aw.Spec.Components {
		b.aw.Status.ComponentStatus = append(b.aw.Status.ComponentStatus, v1beta2.AppWrapperComponentStatus{PodSets: c.DeclaredPodSets})
	}
	return b
}

// Build returns a new AppWrapper with each call.
func (b *AppWrapperBuilder) Build() *v1beta2.AppWrapper {
	return b.aw.DeepCopy()
}
