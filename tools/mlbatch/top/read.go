// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/nodesettings"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
	"github.com/mlbatch/mlbatch/tools/mlbatch/reading"
)

// Read lists what Judge needs for a view. Without a view, a user who may not see ClusterQueues gets the LocalQueues of
// the namespace.
func Read(ctx context.Context, c client.Reader, namespace string, view View) (Objects, error) {
	r := &reader{client: c, namespace: namespace, found: Objects{Signs: nodesigns.Default()}}
	read := map[View]func(context.Context) error{ByTeam: r.teams, ByQueue: r.queues, ByNode: r.nodes, ByFlavor: r.flavors}[view]
	if read == nil {
		read = r.all
	}
	err := read(ctx)
	return r.found, err
}

type reader struct {
	client    client.Reader
	namespace string
	found     Objects
}

func (r *reader) all(ctx context.Context) error {
	err := r.clusterQueues(ctx)
	if apierrors.IsForbidden(err) {
		r.unread(err, "clusterqueues", "the role mlbatch-view-queues has it; these are the queues of namespace "+r.namespace)
		return r.localQueues(ctx, r.namespace)
	}
	if err != nil {
		return failed(err, "clusterqueues", "")
	}
	r.namespaces(ctx)
	r.supply(ctx)
	return nil
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
	err := list(ctx, r, "", r.addQueues)
	if err != nil {
		r.unread(err, "localqueues", "these are the queues of namespace "+r.namespace)
		return r.localQueues(ctx, r.namespace)
	}
	return nil
}

func (r *reader) nodes(ctx context.Context) error {
	if err := list(ctx, r, "", r.addNodes); err != nil {
		return failed(err, "nodes", "")
	}
	if err := list(ctx, r, "", r.addFlavors); err != nil {
		r.unread(err, "resourceflavors", "the flavors of nodes are missing")
	}
	r.signs(ctx)
	r.pods(ctx, "what is used is missing")
	return nil
}

func (r *reader) clusterQueues(ctx context.Context) error {
	queues := []kueue.ClusterQueue{}
	err := list(ctx, r, "", func(page *kueue.ClusterQueueList) { queues = append(queues, page.Items...) })
	if err == nil {
		r.found.ClusterQueues = queues
	}
	return err
}

func (r *reader) localQueues(ctx context.Context, namespace string) error {
	if err := list(ctx, r, namespace, r.addQueues); err != nil {
		return failed(err, "localqueues", namespace)
	}
	return nil
}

func (r *reader) addQueues(page *kueue.LocalQueueList) {
	r.found.LocalQueues = append(r.found.LocalQueues, page.Items...)
}

func (r *reader) addFlavors(page *kueue.ResourceFlavorList) {
	r.found.Flavors = append(r.found.Flavors, page.Items...)
}

func (r *reader) addNodes(page *corev1.NodeList) {
	r.found.Nodes = append(r.found.Nodes, page.Items...)
}

// namespaces are those of teams, or else the own one.
func (r *reader) namespaces(ctx context.Context) {
	err := list(ctx, r, "", r.addQueues)
	if err != nil && list(ctx, r, r.namespace, r.addQueues) != nil {
		r.unread(err, "localqueues", "the namespaces of teams are missing")
	}
}

// supply is what is promised and what nodes have.
func (r *reader) supply(ctx context.Context) {
	if err := list(ctx, r, "", func(page *kueue.CohortList) { r.found.Cohorts = append(r.found.Cohorts, page.Items...) }); err != nil {
		r.unread(err, "cohorts", "quota that belongs to a cohort is missing")
	}
	if err := list(ctx, r, "", r.addFlavors); err != nil {
		r.unread(err, "resourceflavors", "what the nodes have is missing")
		return
	}
	if err := list(ctx, r, "", r.addNodes); err != nil {
		r.unread(err, "nodes", "what they have is missing")
		return
	}
	r.signs(ctx)
	r.pods(ctx, "what is stranded is missing")
}

// signs are those that the controller of this cluster reads, or its usual ones.
func (r *reader) signs(ctx context.Context) {
	err := list(ctx, r, "", func(page *appsv1.DeploymentList) {
		for _, d := range page.Items {
			if part, known := parts.Of(d.Name); known && part.Name == "appwrapper" {
				r.configured(ctx, d)
			}
		}
	})
	if err != nil {
		r.unread(err, "deployments", usualSigns)
	}
}

const usualSigns = "nodes count as usable unless they show one of the usual signs"

func (r *reader) configured(ctx context.Context, d appsv1.Deployment) {
	file, err := nodesettings.Mounted(ctx, r.client, d, nodesettings.File)
	if err != nil {
		r.unread(err, "configmaps", usualSigns)
		return
	}
	signs, err := nodesigns.Parse([]byte(file))
	if err != nil {
		r.found.Unread = append(r.found.Unread, fmt.Sprintf("cannot read %s in a ConfigMap of the Deployment %s/%s; %s", nodesettings.File, d.Namespace, d.Name, usualSigns))
		return
	}
	if r.found.Signs, err = nodesettings.Remembered(ctx, r.client, signs, d.Namespace); err != nil {
		r.unread(err, "configmaps", "devices that nodes no longer show are missing")
	}
}

func (r *reader) pods(ctx context.Context, without string) {
	running := fields.AndSelectors(fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", "Succeeded"), fields.OneTermNotEqualSelector("status.phase", "Failed"))
	pods := []corev1.Pod{}
	err := reading.Pages(ctx, r.client, func(page *corev1.PodList) { pods = append(pods, page.Items...) }, client.MatchingFieldsSelector{Selector: running})
	if err != nil {
		r.unread(err, "pods", without)
		return
	}
	r.found.Pods = pods
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
