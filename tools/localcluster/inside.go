// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// observeTimeout limits all requests to the API server together.
const observeTimeout = 10 * time.Second

// observe adds to a status what the API server reports.
func (c *Cluster) observe(ctx context.Context, s *Status, keeper plan.Keeper, namespaces []string) error {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	config, err := c.RESTConfig()
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot connect to the API server: %w", err)
	}
	if _, err := api.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("the API server is not ready: %w", err)
	}
	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list nodes: %w", err)
	}
	s.Nodes = countNodes(nodes.Items, keeper)
	for _, namespace := range namespaces {
		list, err := api.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("cannot list Deployments: %w", err)
		}
		for _, d := range list.Items {
			s.Deployments = append(s.Deployments, deployment(d))
		}
	}
	return nil
}

// countNodes counts the nodes of each kind. It expects as many as were asked for.
func countNodes(nodes []corev1.Node, asked plan.Keeper) []Nodes {
	counts := []Nodes{{Kind: "real"}, {Kind: "simulated"}}
	for _, n := range nodes {
		kind := &counts[0]
		if n.Labels[simulatedNodeLabel] == "true" {
			kind = &counts[1]
		}
		kind.All++
		if ready(n) == nil {
			kind.Ready++
		}
	}
	counts[0].All, counts[1].All = max(counts[0].All, asked.PlatformNodes, 1), max(counts[1].All, asked.SimulatedNodes)
	return counts
}

func deployment(d appsv1.Deployment) Deployment {
	found := Deployment{Name: d.Namespace + "/" + d.Name, Ready: d.Status.ReadyReplicas, All: 1}
	if d.Spec.Replicas != nil {
		found.All = *d.Spec.Replicas
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		found.Images = append(found.Images, c.Image)
	}
	return found
}
