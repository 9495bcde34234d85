// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// namespace is what a request found out about one. If it could not be read, unread says why.
type namespace struct {
	labels, annotations map[string]string
	unread              error
}

// readNamespace reads a namespace.
type readNamespace func(ctx context.Context, name string) namespace

// fromCache reads from the API server's cache, which is cheap, and new enough for what is
// checked again when pods are created.
func fromCache(reader client.Reader) readNamespace {
	return func(ctx context.Context, name string) namespace {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		cached := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, found, cached); err != nil {
			log.FromContext(ctx).Error(err, "cannot read the namespace", "namespace", name)
			return namespace{unread: err}
		}
		return namespace{labels: found.Labels, annotations: found.Annotations}
	}
}

// check refuses what the API server would refuse to create, and warns of pods. A namespace that
// cannot be read is no reason to refuse anything.
func (n namespace) check(decoded admissionrules.Decoded, policies config.Policies, healthTaints []string) (field.ErrorList, admission.Warnings) {
	if n.unread != nil {
		return nil, nil
	}
	in := admissionrules.Namespace{Labels: n.labels, Annotations: n.annotations, Policies: admissionrules.Policies(policies), HealthTaints: healthTaints}
	if problems := decoded.ValidateIn(in); len(problems) > 0 {
		return problems, nil
	}
	return nil, decoded.WarningsOnPods(in)
}

// managed knows which namespaces Kueue manages.
type managed struct {
	selector labels.Selector
}

func newManaged(selector *metav1.LabelSelector) (*managed, error) {
	if selector == nil {
		return nil, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("cannot understand appwrapper.kueue.managedJobsNamespaceSelector: %w", err)
	}
	return &managed{selector: parsed}, nil
}

// warning tells the author that the AppWrapper is not queued.
func (m *managed) warning(aw *v1beta2.AppWrapper, found namespace) admission.Warnings {
	queue := aw.Labels[v1beta2.QueueNameLabel]
	if m == nil || queue == "" || found.unread != nil || m.selector.Matches(labels.Set(found.labels)) {
		return nil
	}
	return admission.Warnings{fmt.Sprintf("Kueue does not manage namespace %q (%s): queue %q has no effect, and the AppWrapper does not wait for quota",
		aw.Namespace, m.selector, queue)}
}

// waits tells whether Kueue decides when an AppWrapper without a queue starts. If the
// namespace cannot be read, it does.
func (m *managed) waits(found namespace) bool {
	return m != nil && (found.unread != nil || m.selector.Matches(labels.Set(found.labels)))
}
