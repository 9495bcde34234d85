// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// mostPages is how many pages of the pods of all nodes are read.
const mostPages = 3

// readRoom reads the nodes and what uses them, if pods lack something of nodes.
func (r *gathering) readRoom(ctx context.Context) {
	names := r.Lacking()
	if len(names) == 0 {
		return
	}
	nodes, err := clusterstate.List[corev1.Node](ctx, r.client, &corev1.NodeList{})
	if err != nil {
		r.unread(err, "the nodes, which say where there is room")
		return
	}
	r.Nodes = nodes
	r.readPlaced(ctx)
	r.readFlavor(ctx, names)
}

// readPlaced reads the pods on all nodes, unless these are too many.
func (r *gathering) readPlaced(ctx context.Context) {
	placed, all, err := clusterstate.Some[corev1.Pod](ctx, r.client, &corev1.PodList{}, mostPages, clusterstate.OnNodes())
	switch {
	case err != nil:
		r.unread(err, "the pods of all nodes, which say where there is room")
	case !all:
		r.Unread = append(r.Unread, fmt.Sprintf("there are more than %d pods on nodes: what the nodes have free is not known", mostPages*clusterstate.Page))
	default:
		r.Placed = append([]corev1.Pod{}, placed...)
	}
}

// readFlavor reads the flavor that the work got for what it lacks, and the quota of all queues.
func (r *gathering) readFlavor(ctx context.Context, names []corev1.ResourceName) {
	name := flavorOf(r.Objects, names)
	if name == "" || r.Placed == nil {
		return
	}
	flavor := &kueue.ResourceFlavor{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, flavor); err != nil {
		r.unread(err, "ResourceFlavor "+name)
		return
	}
	queues, err := clusterstate.List[kueue.ClusterQueue](ctx, r.client, &kueue.ClusterQueueList{})
	if err != nil {
		r.unread(err, "the ClusterQueues, which say how much quota is promised")
		return
	}
	cohorts, err := clusterstate.List[kueue.Cohort](ctx, r.client, &kueue.CohortList{})
	if err != nil {
		r.unread(err, "the Cohorts, which say how much quota is promised")
		return
	}
	r.Flavor, r.ClusterQueues, r.Cohorts = flavor, queues, cohorts
}

func flavorOf(o explain.Objects, names []corev1.ResourceName) string {
	if o.Workload == nil || o.Workload.Status.Admission == nil {
		return ""
	}
	for _, podSet := range o.Workload.Status.Admission.PodSetAssignments {
		for _, name := range names {
			if flavor := podSet.Flavors[name]; flavor != "" {
				return string(flavor)
			}
		}
	}
	return ""
}
