// SPDX-License-Identifier: Apache-2.0

package teamsdiff

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/reading"
)

// Read lists what Compare needs. The error names what the user may not list.
func Read(ctx context.Context, c client.Reader) ([]Object, error) {
	r := &reader{client: c}
	list(ctx, r, "clusterqueues", func(page *kueue.ClusterQueueList) { add(r, page.Items, ofClusterQueue) })
	list(ctx, r, "localqueues", func(page *kueue.LocalQueueList) { add(r, page.Items, ofLocalQueue) })
	list(ctx, r, "cohorts", func(page *kueue.CohortList) { add(r, page.Items, ofCohort) })
	list(ctx, r, "resourceflavors", func(page *kueue.ResourceFlavorList) { add(r, page.Items, ofFlavor) })
	list(ctx, r, "namespaces", func(page *corev1.NamespaceList) { add(r, page.Items, ofNamespace) })
	return sorted(r.found), r.err
}

type reader struct {
	client client.Reader
	found  []Object
	err    error
}

func add[T any](r *reader, items []T, of func(T) Object) {
	for _, item := range items {
		r.found = append(r.found, of(item))
	}
}

func list[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, r *reader, resource string, page func(P)) {
	if r.err != nil {
		return
	}
	if err := reading.Pages(ctx, r.client, page); err != nil {
		r.err = reading.Failed(err, reading.Deed{Verb: "list", Resource: resource})
	}
}
