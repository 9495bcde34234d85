// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/reading"
)

// mostPages is how many pages of the pods of all nodes are read.
const mostPages = 3

// readRoom reads the nodes and what uses them, if pods lack something of nodes.
func (r *gathering) readRoom(ctx context.Context) {
	names := r.Lacking()
	if len(names) == 0 {
		return
	}
	add := func(page *corev1.NodeList) { r.Nodes = append(r.Nodes, page.Items...) }
	if err := reading.Pages(ctx, r.client, add); err != nil {
		r.unread(err, "the nodes, which say where there is room")
		return
	}
	r.readPlaced(ctx)
	r.readFlavor(ctx, names)
}

// readPlaced reads the pods on all nodes, unless these are too many.
func (r *gathering) readPlaced(ctx context.Context) {
	running := client.MatchingFieldsSelector{Selector: fields.AndSelectors(fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", "Succeeded"), fields.OneTermNotEqualSelector("status.phase", "Failed"))}
	placed, next := []corev1.Pod{}, ""
	for range mostPages {
		var page corev1.PodList
		if err := r.client.List(ctx, &page, running, client.Limit(reading.Page), client.Continue(next)); err != nil {
			r.unread(err, "the pods of all nodes, which say where there is room")
			return
		}
		placed = append(placed, page.Items...)
		if next = page.Continue; next == "" {
			r.Placed = placed
			return
		}
	}
	r.Unread = append(r.Unread, fmt.Sprintf("there are more than %d pods on nodes: what the nodes have free is not known", mostPages*reading.Page))
}

// readFlavor reads the flavor that the work got for what it lacks, and the quota of all queues.
func (r *gathering) readFlavor(ctx context.Context, names []corev1.ResourceName) {
	name := flavorOf(r.Objects, names)
	if name == "" || r.Placed == nil {
		return
	}
	flavor, queues, cohorts := &kueue.ResourceFlavor{}, kueue.ClusterQueueList{}, kueue.CohortList{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, flavor); err != nil {
		r.unread(err, "ResourceFlavor "+name)
		return
	}
	if err := r.client.List(ctx, &queues); err != nil {
		r.unread(err, "the ClusterQueues, which say how much quota is promised")
		return
	}
	if err := r.client.List(ctx, &cohorts); err != nil {
		r.unread(err, "the Cohorts, which say how much quota is promised")
		return
	}
	r.Flavor, r.ClusterQueues, r.Cohorts = flavor, queues.Items, cohorts.Items
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
