// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

var (
	wrapperKind = v1beta2.GroupVersion.WithKind("AppWrapper")
	runKind     = v1alpha1.GroupVersion.WithKind("Run")
)

// plural is the resource of a kind.
func plural(kind string) string { return strings.ToLower(kind) + "s" }

// Names are those of the AppWrappers and Runs of a namespace, as far as they can be listed in one page.
func Names(ctx context.Context, c client.Reader, namespace string) (names []string) {
	for _, kind := range []schema.GroupVersionKind{wrapperKind, runKind} {
		for _, item := range page(ctx, c, namespace, kind) {
			names = append(names, item.Name)
		}
	}
	return names
}

// NamesOf are the names of a kind, as users write it, in a namespace.
func NamesOf(ctx context.Context, c client.Reader, namespace, kind string) (names []string) {
	target, err := Parse(namespace, kind+"/any")
	if err != nil {
		return nil
	}
	for _, item := range page(ctx, c, namespace, gvk(target.Kind)) {
		names = append(names, item.Name)
	}
	return names
}

func gvk(kind string) schema.GroupVersionKind {
	switch kind {
	case "appwrapper":
		return wrapperKind
	case "run":
		return runKind
	}
	return bare[kind].kind
}

// BareJobs are the names of the owners of Workloads that are no AppWrappers.
func BareJobs(ctx context.Context, c client.Reader, namespace string) (names []string) {
	for _, w := range page(ctx, c, namespace, kueue.SchemeGroupVersion.WithKind("Workload")) {
		for _, o := range w.OwnerReferences {
			if o.Kind != wrapperKind.Kind {
				names = append(names, o.Name)
			}
		}
	}
	return names
}

// page lists a kind. If that fails, only a suggestion is lost.
func page(ctx context.Context, c client.Reader, namespace string, kind schema.GroupVersionKind) []metav1.PartialObjectMetadata {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	some, _, err := clusterstate.Some[metav1.PartialObjectMetadata](ctx, c, list, 1, client.InNamespace(namespace))
	if err != nil {
		return nil
	}
	return some
}
