// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/reading"
)

// Read lists what Judge needs. A user who may not see ClusterQueues gets the LocalQueues of the namespace.
func Read(ctx context.Context, c client.Reader, namespace string) (Objects, error) {
	r := &reader{client: c}
	o := &r.found
	o.ClusterQueues = []kueue.ClusterQueue{}
	if err := list(ctx, r, "", func(page *kueue.ClusterQueueList) { o.ClusterQueues = append(o.ClusterQueues, page.Items...) }); err != nil {
		if !apierrors.IsForbidden(err) {
			return Objects{}, failed(err, "clusterqueues", "")
		}
		o.ClusterQueues = nil
		r.unread(err, "clusterqueues", "the role mlbatch-view-queues has it; these are the queues of namespace "+namespace)
		err := list(ctx, r, namespace, func(page *kueue.LocalQueueList) { o.LocalQueues = append(o.LocalQueues, page.Items...) })
		if err != nil {
			return Objects{}, failed(err, "localqueues", namespace)
		}
		return *o, nil
	}
	r.rest(ctx, namespace)
	return *o, nil
}

type reader struct {
	client client.Reader
	found  Objects
}

// rest reads what makes the answer more complete.
func (r *reader) rest(ctx context.Context, namespace string) {
	o := &r.found
	queues := func(page *kueue.LocalQueueList) { o.LocalQueues = append(o.LocalQueues, page.Items...) }
	if err := list(ctx, r, "", queues); err != nil {
		if list(ctx, r, namespace, queues) != nil {
			r.unread(err, "localqueues", "the namespaces of teams are missing")
		}
	}
	if err := list(ctx, r, "", func(page *kueue.CohortList) { o.Cohorts = append(o.Cohorts, page.Items...) }); err != nil {
		r.unread(err, "cohorts", "quota that belongs to a cohort is missing")
	}
	if err := list(ctx, r, "", func(page *kueue.ResourceFlavorList) { o.Flavors = append(o.Flavors, page.Items...) }); err != nil {
		r.unread(err, "resourceflavors", "what the nodes have is missing")
		return
	}
	if err := list(ctx, r, "", func(page *corev1.NodeList) { o.Nodes = append(o.Nodes, page.Items...) }); err != nil {
		r.unread(err, "nodes", "what they have is missing")
	}
}

func list[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, r *reader, namespace string, add func(P)) error {
	return reading.Pages(ctx, r.client, add, client.InNamespace(namespace))
}

func (r *reader) unread(err error, resource, consequence string) {
	r.found.Unread = append(r.found.Unread, failed(err, resource, "").Error()+"; "+consequence)
}

func failed(err error, resource, namespace string) error {
	return reading.Failed(err, reading.Deed{Verb: "list", Resource: resource, Namespace: namespace})
}
