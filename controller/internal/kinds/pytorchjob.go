// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=pytorchjobs,verbs=get;list;watch;create;delete

// pyTorchJob is the training operator's PyTorchJob.
var pyTorchJob = kubeflowJob("v1", "PyTorchJob", "pytorchReplicaSpecs", "Master", "Worker").
	knownToKueueIf(spelledAsKueueDoes("pytorchReplicaSpecs", "Master", "Worker"))
