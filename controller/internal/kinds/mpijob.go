// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;watch;create;delete

// mpiJob is the training operator's MPIJob, and mpiJobV2 that of the MPI operator. They
// are versions of one resource in name only, and a cluster can have one of them.
var (
	mpiJob   = kubeflowJob("v1", "MPIJob", "mpiReplicaSpecs", "Launcher", "Worker")
	mpiJobV2 = kubeflowJob("v2beta1", "MPIJob", "mpiReplicaSpecs", "Launcher", "Worker")
)
