// SPDX-License-Identifier: Apache-2.0

// Package given builds the objects that tests begin with: complete, ordinary, and
// changed by one word for each thing that matters to the test.
package given

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Namespace is where objects live unless a test says otherwise.
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

// ManagedBy hands it to a controller.
func (b *AppWrapperBuilder) ManagedBy(controller string) *AppWrapperBuilder {
	b.aw.Spec.ManagedBy = &controller
	return b
}

// Unsuspended gives it permission to deploy.
func (b *AppWrapperBuilder) Unsuspended() *AppWrapperBuilder {
	b.aw.Spec.Suspend = false
	return b
}

// WithFinalizer gives it the controller's finalizer.
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

// InPhase puts it into a phase, with the pod sets that its components declare and as
// many component statuses as it has components.
func (b *AppWrapperBuilder) InPhase(phase v1beta2.AppWrapperPhase) *AppWrapperBuilder {
	b.aw.Status.Phase = phase
	b.aw.Status.ComponentStatus = nil
	for _, c := range b.aw.Spec.Components {
		b.aw.Status.ComponentStatus = append(b.aw.Status.ComponentStatus, v1beta2.AppWrapperComponentStatus{PodSets: c.DeclaredPodSets})
	}
	return b
}

// Build returns the AppWrapper; a later Build returns another.
func (b *AppWrapperBuilder) Build() *v1beta2.AppWrapper {
	return b.aw.DeepCopy()
}
