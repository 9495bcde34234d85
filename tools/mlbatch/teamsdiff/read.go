// SPDX-License-Identifier: Apache-2.0

package teamsdiff

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// Read lists what Compare needs. The error names what the user may not list.
func Read(ctx context.Context, c client.Reader) ([]Object, error) {
	r := &reader{client: c}
	list(ctx, r, "clusterqueues", &kueue.ClusterQueueList{}, ofClusterQueue)
	list(ctx, r, "localqueues", &kueue.LocalQueueList{}, ofLocalQueue)
	list(ctx, r, "cohorts", &kueue.CohortList{}, ofCohort)
	list(ctx, r, "resourceflavors", &kueue.ResourceFlavorList{}, ofFlavor)
	list(ctx, r, "namespaces", &corev1.NamespaceList{}, ofNamespace)
	return sorted(r.found), r.err
}

type reader struct {
	client client.Reader
	found  []Object
	err    error
}

func list[T any](ctx context.Context, r *reader, resource string, kind client.ObjectList, of func(T) Object) {
	if r.err != nil {
		return
	}
	if err := clusterstate.Each(ctx, r.client, kind, func(o *T) { r.found = append(r.found, of(*o)) }); err != nil {
		r.err = clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: resource})
	}
}
