// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;watch;create;delete

// mpiJob is the MPIJob of the training operator, and mpiJobV2 that of the MPI operator. They
// share nothing but the name of the resource, and a cluster can have only one of them.
var (
	mpiJob   = kubeflowJob("v1", "MPIJob", "mpiReplicaSpecs", "Launcher", "Worker")
	mpiJobV2 = kubeflowJob("v2beta1", "MPIJob", "mpiReplicaSpecs", "Launcher", "Worker")
)
