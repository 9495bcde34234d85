// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	ray "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kjson "sigs.k8s.io/json"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/yaml"
)

// upstream has the Go type of each kind, as published by its project.
var upstream = map[schema.GroupVersionKind]func() any{
	pod.GVK:             func() any { return &corev1.Pod{} },
	deployment.GVK:      func() any { return &appsv1.Deployment{} },
	statefulSet.GVK:     func() any { return &appsv1.StatefulSet{} },
	replicaSet.GVK:      func() any { return &appsv1.ReplicaSet{} },
	job.GVK:             func() any { return &batchv1.Job{} },
	jobSet.GVK:          func() any { return &jobset.JobSet{} },
	leaderWorkerSet.GVK: func() any { return &lws.LeaderWorkerSet{} },
	pyTorchJob.GVK:      func() any { return &kubeflow.PyTorchJob{} },
	tfJob.GVK:           func() any { return &kubeflow.TFJob{} },
	xgBoostJob.GVK:      func() any { return &kubeflow.XGBoostJob{} },
	paddleJob.GVK:       func() any { return &kubeflow.PaddleJob{} },
	jaxJob.GVK:          func() any { return &kubeflow.JAXJob{} },
	mpiJob.GVK:          func() any { return &kubeflow.MPIJob{} },
	// The MPI operator is not one of our modules. The controller uses only fields that v1 has,
	// too.
	mpiJobV2.GVK:   func() any { return &kubeflow.MPIJob{} },
	rayCluster.GVK: func() any { return &ray.RayCluster{} },
	rayJob.GVK:     func() any { return &ray.RayJob{} },
	rayService.GVK: func() any { return &ray.RayService{} },

	{Version: "v1", Kind: "Service"}:               func() any { return &corev1.Service{} },
	{Version: "v1", Kind: "ConfigMap"}:             func() any { return &corev1.ConfigMap{} },
	{Version: "v1", Kind: "PersistentVolumeClaim"}: func() any { return &corev1.PersistentVolumeClaim{} },
	{Version: "v1", Kind: "ServiceAccount"}:        func() any { return &corev1.ServiceAccount{} },
	// No Go module has the former API group of PodGroup any more.
	{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}:    func() any { return &podgroup.PodGroup{} },
	{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Kind: "PodGroup"}: func() any { return &podgroup.PodGroup{} },
}

// malformed has objects that violate the schema of their kind.
const malformed = "malformed.in.yaml"

// A field that is misspelled in a fixture and in the code would pass every other test.
func TestFixturesAreRealObjects(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[schema.GroupVersionKind]bool{}
	for _, file := range files {
		for sentence, object := range fixtures(t, file) {
			kind := object.GroupVersionKind()
			decode, known := upstream[kind]
			if !known {
				continue
			}
			seen[kind] = true
			t.Run(filepath.Base(file)+"/"+sentence, func(t *testing.T) {
				err := decodeStrictly(t, object, decode())
				if isReal := filepath.Base(file) != malformed; isReal != (err == nil) {
					t.Errorf("listed as valid: %t, but: %v", isReal, err)
				}
			})
		}
	}
	for _, k := range known {
		if !seen[k.GVK] {
			t.Errorf("%s has no fixture that was compared with its upstream type: add testdata, and the type to the list upstream", k.GVK)
		}
	}
}

func fixtures(t *testing.T, file string) map[string]*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var resources map[string]map[string]any
	if err := yaml.UnmarshalStrict(content, &resources); err != nil {
		t.Fatal(err)
	}
	objects := make(map[string]*unstructured.Unstructured, len(resources))
	for sentence, content := range resources {
		objects[sentence] = &unstructured.Unstructured{Object: content}
	}
	return objects
}

// decodeStrictly fails on unknown fields, fields in another case and duplicates.
func decodeStrictly(t *testing.T, object *unstructured.Unstructured, into any) error {
	t.Helper()
	encoded, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	strict, err := kjson.UnmarshalStrict(encoded, into)
	return errors.Join(append(strict, err)...)
}
