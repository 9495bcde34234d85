// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// managed knows which namespaces Kueue manages.
type managed struct {
	selector labels.Selector
	// labelsOf are the labels of a namespace.
	labelsOf func(ctx context.Context, namespace string) (labels.Set, error)
}

func newManaged(selector *metav1.LabelSelector, reader client.Reader) (*managed, error) {
	if selector == nil {
		return nil, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("cannot understand appwrapper.kueue.managedJobsNamespaceSelector: %w", err)
	}
	labelsOf := func(ctx context.Context, name string) (labels.Set, error) {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(namespaceKind)
		// The API server's cache is new enough for a warning, and cheap.
		fromCache := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}
		err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace, fromCache)
		return namespace.Labels, err
	}
	return &managed{selector: parsed, labelsOf: labelsOf}, nil
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// warning tells the author that the AppWrapper is not queued. A namespace that cannot be read
// is no reason to refuse anything.
func (m *managed) warning(ctx context.Context, aw *v1beta2.AppWrapper) admission.Warnings {
	queue := aw.Labels[v1beta2.QueueNameLabel]
	if m == nil || queue == "" {
		return nil
	}
	found, err := m.labelsOf(ctx, aw.Namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot check whether Kueue manages the namespace", "namespace", aw.Namespace)
		return nil
	}
	if m.selector.Matches(found) {
		return nil
	}
	return admission.Warnings{fmt.Sprintf("Kueue does not manage namespace %q (%s): queue %q has no effect, and the AppWrapper does not wait for quota",
		aw.Namespace, m.selector, queue)}
}

// waits tells whether Kueue decides when an AppWrapper without a queue starts. If the
// namespace cannot be read, it does.
func (m *managed) waits(ctx context.Context, aw *v1beta2.AppWrapper) bool {
	if m == nil {
		return false
	}
	found, err := m.labelsOf(ctx, aw.Namespace)
	return err != nil || m.selector.Matches(found)
}
