// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// mostPages is how many pages of the pods of all nodes are read.
const mostPages = 3

// readRoom reads the nodes and what uses them, if pods lack something of nodes.
func (r *gathering) readRoom(ctx context.Context) {
	if len(r.Lacking()) == 0 {
		return
	}
	if nodes, err := clusterstate.List[corev1.Node](ctx, r.client, &corev1.NodeList{}); err != nil {
		r.unread(err, "the nodes, which say where there is room")
	} else {
		r.Nodes = nodes
		r.readPlaced(ctx)
	}
	r.readFlavor(ctx)
	if r.Flavor != nil && r.Placed != nil {
		r.readPromised(ctx)
	}
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

// readFlavor reads the flavor that the work got for what it lacks. It says what the largest of its nodes have.
func (r *gathering) readFlavor(ctx context.Context) {
	name := r.LackingFlavor()
	if name == "" {
		return
	}
	flavor := &kueue.ResourceFlavor{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, flavor); err != nil {
		r.unread(err, "ResourceFlavor "+name)
		return
	}
	r.Flavor = flavor
}

// readPromised reads the quota of all queues.
func (r *gathering) readPromised(ctx context.Context) {
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
	r.ClusterQueues, r.Cohorts = queues, cohorts
}
