// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// Top lists what top judges for a view. Without a view, or for the own one, a user who may not see ClusterQueues gets
// the LocalQueues of the namespace.
func Top(ctx context.Context, c client.Reader, namespace string, view top.View) (top.Objects, error) {
	r := &reader{client: c, namespace: namespace, found: top.Objects{Signs: nodesigns.Default()}}
	read := map[top.View]func(context.Context) error{top.ByTeam: r.teams, top.ByQueue: r.queues, top.ByNode: r.nodes, top.ByFlavor: r.flavors, top.Own: r.own}[view]
	if read == nil {
		read = r.all
	}
	err := read(ctx)
	return r.found, err
}

type reader struct {
	client    client.Reader
	namespace string
	found     top.Objects
}

func (r *reader) all(ctx context.Context) error {
	return r.orLocal(ctx, func() error {
		r.namespaces(ctx)
		r.supply(ctx)
		return nil
	})
}

// own is what the teams of the namespace's LocalQueues have.
func (r *reader) own(ctx context.Context) error {
	return r.orLocal(ctx, func() error {
		r.cohorts(ctx)
		return r.localQueues(ctx, r.namespace)
	})
}

// orLocal reads ClusterQueues and more, or else only the LocalQueues of the namespace.
func (r *reader) orLocal(ctx context.Context, more func() error) error {
	err := r.clusterQueues(ctx)
	if apierrors.IsForbidden(err) {
		r.unread(err, "clusterqueues", "the role mlbatch-view-queues has it; these are the queues of namespace "+r.namespace)
		return r.localQueues(ctx, r.namespace)
	}
	if err != nil {
		return failed(err, "clusterqueues", "")
	}
	return more()
}

func (r *reader) teams(ctx context.Context) error {
	if err := r.clusterQueues(ctx); err != nil {
		return failed(err, "clusterqueues", "")
	}
	r.namespaces(ctx)
	return nil
}

func (r *reader) flavors(ctx context.Context) error {
	if err := r.clusterQueues(ctx); err != nil {
		return failed(err, "clusterqueues", "")
	}
	r.supply(ctx)
	return nil
}

// queues are those of all namespaces, or else of one.
func (r *reader) queues(ctx context.Context) error {
	err := r.queuesIn(ctx, "")
	if err != nil {
		r.unread(err, "localqueues", "these are the queues of namespace "+r.namespace)
		return r.localQueues(ctx, r.namespace)
	}
	return nil
}

func (r *reader) nodes(ctx context.Context) (err error) {
	if r.found.Nodes, err = List[corev1.Node](ctx, r.client, &corev1.NodeList{}); err != nil {
		return failed(err, "nodes", "")
	}
	if r.found.Flavors, err = List[kueue.ResourceFlavor](ctx, r.client, &kueue.ResourceFlavorList{}); err != nil {
		r.unread(err, "resourceflavors", "the flavors of nodes are missing")
	}
	r.signs(ctx)
	r.pods(ctx, "what is used is missing")
	return nil
}

func (r *reader) clusterQueues(ctx context.Context) (err error) {
	r.found.ClusterQueues, err = List[kueue.ClusterQueue](ctx, r.client, &kueue.ClusterQueueList{})
	return err
}

func (r *reader) localQueues(ctx context.Context, namespace string) error {
	if err := r.queuesIn(ctx, namespace); err != nil {
		return failed(err, "localqueues", namespace)
	}
	return nil
}

func (r *reader) queuesIn(ctx context.Context, namespace string) (err error) {
	r.found.LocalQueues, err = List[kueue.LocalQueue](ctx, r.client, &kueue.LocalQueueList{}, client.InNamespace(namespace))
	return err
}

// namespaces are those of teams, or else the own one.
func (r *reader) namespaces(ctx context.Context) {
	err := r.queuesIn(ctx, "")
	if err != nil && r.queuesIn(ctx, r.namespace) != nil {
		r.unread(err, "localqueues", "the namespaces of teams are missing")
	}
}

// supply is what is promised and what nodes have.
func (r *reader) supply(ctx context.Context) {
	var err error
	r.cohorts(ctx)
	if r.found.Flavors, err = List[kueue.ResourceFlavor](ctx, r.client, &kueue.ResourceFlavorList{}); err != nil {
		r.unread(err, "resourceflavors", "what the nodes have is missing")
		return
	}
	if r.found.Nodes, err = List[corev1.Node](ctx, r.client, &corev1.NodeList{}); err != nil {
		r.unread(err, "nodes", "what they have is missing")
		return
	}
	r.signs(ctx)
	r.pods(ctx, "what is stranded is missing")
}

func (r *reader) cohorts(ctx context.Context) {
	var err error
	if r.found.Cohorts, err = List[kueue.Cohort](ctx, r.client, &kueue.CohortList{}); err != nil {
		r.unread(err, "cohorts", "quota that belongs to a cohort is missing")
	}
}

// signs are those that the controller of this cluster reads, or its usual ones.
func (r *reader) signs(ctx context.Context) {
	all, err := List[appsv1.Deployment](ctx, r.client, &appsv1.DeploymentList{})
	if err != nil {
		r.unread(err, "deployments", usualSigns)
	}
	for _, d := range all {
		if part, known := parts.Of(d.Name); known && part.Name == "appwrapper" {
			r.configured(ctx, d)
		}
	}
}

const usualSigns = "nodes count as usable unless they show one of the usual signs"

func (r *reader) configured(ctx context.Context, d appsv1.Deployment) {
	file, err := Mounted(ctx, r.client, d, ControllerFile)
	if err != nil {
		r.unread(err, "configmaps", usualSigns)
		return
	}
	signs, err := nodesigns.Parse([]byte(file))
	if err != nil {
		r.found.Unread = append(r.found.Unread, fmt.Sprintf("cannot read %s in a ConfigMap of the Deployment %s/%s; %s", ControllerFile, d.Namespace, d.Name, usualSigns))
		return
	}
	if r.found.Signs, err = Remembered(ctx, r.client, signs, d.Namespace); err != nil {
		r.unread(err, "configmaps", "devices that nodes no longer show are missing")
	}
}

func (r *reader) pods(ctx context.Context, without string) {
	var err error
	if r.found.Pods, err = List[corev1.Pod](ctx, r.client, &corev1.PodList{}, OnNodes()); err != nil {
		r.unread(err, "pods", without)
	}
}

func (r *reader) unread(err error, resource, consequence string) {
	r.found.Unread = append(r.found.Unread, failed(err, resource, "").Error()+"; "+consequence)
}

func failed(err error, resource, namespace string) error {
	return Failed(err, Request{Verb: "list", Resource: resource, Namespace: namespace})
}
