// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/artifacts/images/ray"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/s3"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// Variables with the images of stories. Without them, a node must have the local cluster's
// images.
const (
	WorkloadVariable = "E2E_WORKLOAD_IMAGE"
	TrainingVariable = "E2E_TRAINING_IMAGE"
	RayVariable      = "E2E_RAY_IMAGE"
	S3Variable       = "E2E_S3_IMAGE"
)

// SimulatedLabel marks nodes that KWOK simulates, and their flavor in testdata/teams.yaml. They
// also have the taint nvidia.com/gpu.
const SimulatedLabel = "localcluster.mlbatch.dev/simulated"

// TrainingImage is the training image of local clusters.
const TrainingImage = "images.local/mlbatch/pytorch-digits:1"

// optional are the kinds of parts that an installation may omit, and those of test/e2e/testdata.
var optional = optionalKinds()

func optionalKinds() []schema.GroupVersionKind {
	all := []schema.GroupVersionKind{
		{Group: "kubeflow.org", Version: "v1", Kind: "MPIJob"},
		{Group: "e2e.mlbatch.dev", Version: "v1", Kind: "Rehearsal"},
	}
	for _, p := range parts.All {
		for _, k := range p.Kinds {
			if !p.Essential {
				all = append(all, schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Name})
			}
		}
	}
	return all
}

// Observe examines a cluster. Variable reads the environment: images that it names are believed to
// be in a registry.
func Observe(ctx context.Context, api client.Client, own bool, variable func(string) string) (Cluster, error) {
	nodes := &corev1.NodeList{}
	if err := api.List(ctx, nodes); err != nil {
		return Cluster{}, fmt.Errorf("cannot list the cluster's nodes: %w", err)
	}
	// The images of our own cluster were loaded. Its node says so only half a minute later.
	image := func(name, local string) Image {
		asked := variable(name)
		return Image{Name: cmp.Or(asked, local), There: own || asked != "" || onANode(nodes.Items, local)}
	}
	c := Cluster{
		Own: own, Kinds: map[string]bool{},
		Workload: image(WorkloadVariable, localcluster.WorkloadImage),
		Training: image(TrainingVariable, TrainingImage),
		Ray:      image(RayVariable, ray.Image),
		S3:       image(S3Variable, s3.Image),
	}
	for _, n := range nodes.Items {
		if gpus := n.Status.Allocatable["nvidia.com/gpu"]; n.Labels[SimulatedLabel] == "true" && gpus.Value() == 8 {
			c.Simulated = append(c.Simulated, n.Name)
		}
	}
	for _, kind := range optional {
		_, err := api.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !meta.IsNoMatchError(err) {
			return Cluster{}, fmt.Errorf("cannot ask the cluster for the kind %s: %w", kind.Kind, err)
		}
		c.Kinds[kind.Kind] = err == nil
	}
	return c, nil
}

func onANode(nodes []corev1.Node, image string) bool {
	return slices.ContainsFunc(nodes, func(n corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, image) })
	})
}
