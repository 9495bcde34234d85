// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// +kubebuilder:rbac:groups=kubeflow.org,resources=pytorchjobs,verbs=get;list;watch;create;delete

// pyTorchJob is the training operator's PyTorchJob.
var pyTorchJob = kubeflowJob("v1", "PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master", "Worker").
	knownToKueueIf(spelledAsKueueDoes("pytorchReplicaSpecs", "Master", "Worker")).
	uncountedIf(scaledByMetrics).
	faultyIf(elasticWithoutWorkers)

// scaledByMetrics: with metrics, even with an empty list of them, the training operator creates a
// HorizontalPodAutoscaler.
func scaledByMetrics(object map[string]any) error {
	metrics, _, err := unstructured.NestedFieldNoCopy(object, "spec", "elasticPolicy", "metrics")
	if metrics == nil && err == nil {
		return nil
	}
	return errors.New("spec.elasticPolicy.metrics cannot be set, because an autoscaler would add pods that have no quota: leave it out")
}

// elasticWithoutWorkers: it counts workers.
func elasticWithoutWorkers(object map[string]any) []Fault {
	if inner(object, "spec", "elasticPolicy") == nil || withTemplate(object, "pytorchReplicaSpecs")["Worker"] {
		return nil
	}
	return []Fault{{Path: "spec.elasticPolicy", Value: "…", Why: "leave it out, or add pytorchReplicaSpecs.Worker: it says how many workers there may be"}}
}
