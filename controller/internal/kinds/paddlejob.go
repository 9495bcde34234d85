// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=paddlejobs,verbs=get;list;watch;create;delete

// paddleJob is the training operator's PaddleJob.
var paddleJob = kubeflowJob("v1", "PaddleJob", "paddleReplicaSpecs", "paddle", "Master", "Worker")
