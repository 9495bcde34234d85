// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=jaxjobs,verbs=get;list;watch;create;delete

// jaxJob is the training operator's JAXJob, which has no master.
var jaxJob = kubeflowJob("v1", "JAXJob", "jaxReplicaSpecs", "jax", "Worker")
