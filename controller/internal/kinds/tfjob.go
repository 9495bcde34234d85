// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=tfjobs,verbs=get;list;watch;create;delete

// tfJob is the training operator's TFJob.
var tfJob = kubeflowJob("v1", "TFJob", "tfReplicaSpecs", "tensorflow", "Chief", "Master", "PS", "Worker", "Evaluator")
