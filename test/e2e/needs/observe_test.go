// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/tools/artifacts/images/ray"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/s3"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

func node(name, gpus string, labels map[string]string, images ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
			Images:      []corev1.ContainerImage{{Names: images}},
		},
	}
}

func TestWhatAClusterHasIsSeen(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "kubeflow.org", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, meta.RESTScopeNamespace)
	simulated := map[string]string{SimulatedLabel: "true"}
	api := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(
		node("real", "0", nil, localcluster.WorkloadImage, "workload@sha256:1"),
		node("real-gpus", "8", nil),
		node("gpu-0", "8", simulated),
		node("gpu-1", "4", simulated),
	).Build()
	kinds := map[string]bool{}
	for _, kind := range optional {
		kinds[kind.Kind] = kind.Kind == "PyTorchJob"
	}

	for name, c := range map[string]struct {
		own       bool
		variables map[string]string
		want      Cluster
	}{
		"our own cluster has all images": {true, nil, Cluster{
			Own: true, Kinds: kinds, Simulated: []string{"gpu-0"},
			Workload: Image{localcluster.WorkloadImage, true}, Training: Image{TrainingImage, true}, Ray: Image{ray.Image, true},
			S3: Image{s3.Image, true},
		}},
		"images on nodes are found": {false, nil, Cluster{
			Kinds: kinds, Simulated: []string{"gpu-0"},
			Workload: Image{localcluster.WorkloadImage, true}, Training: Image{TrainingImage, false}, Ray: Image{ray.Image, false},
			S3: Image{s3.Image, false},
		}},
		"images of a registry are believed in": {false, map[string]string{WorkloadVariable: "r/w:2", TrainingVariable: "r/t:2", RayVariable: "r/r:2", S3Variable: "r/s:2"}, Cluster{
			Kinds: kinds, Simulated: []string{"gpu-0"}, Workload: Image{"r/w:2", true}, Training: Image{"r/t:2", true},
			Ray: Image{"r/r:2", true}, S3: Image{"r/s:2", true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Observe(t.Context(), api, c.own, func(name string) string { return c.variables[name] })
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}
