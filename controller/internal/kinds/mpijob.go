// SPDX-License-Identifier: Apache-2.0

package kinds

// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;watch;create;delete

// mpiJob is the MPIJob of the training operator, and mpiJobV2 that of the MPI operator. They
// share nothing but the name of the resource, and a cluster can have only one of them.
var (
	mpiJob   = kubeflowJob("v1", "MPIJob", "mpiReplicaSpecs", "", "Launcher", "Worker").namedBy(jobNameLabel).with(mpiVolumes)
	mpiJobV2 = launcherWaits(kubeflowJob("v2beta1", "MPIJob", "mpiReplicaSpecs", "", "Launcher", "Worker").namedBy(mpiWorkers).with(mpiVolumes))
)

// mpiVolumes are those that the operators add.
func mpiVolumes(map[string]any) []string {
	return []string{"mpi-job-config", "mpi-job-kubectl", "ssh-auth"}
}

func jobNameLabel(map[string]any) []Derived { return []Derived{namedAfterItsPods} }

// mpiWorkers: the MPI operator ignores a job whose workers could not find each other by their names.
func mpiWorkers(object map[string]any) []Derived {
	count := number(object, "spec", "mpiReplicaSpecs", "Worker", "replicas")
	return []Derived{{Suffix: "-worker" + last(count), Of: "the host name of its last Worker", Rule: ServiceName}}
}

// launcherWaits: the MPI operator may create the launcher when the workers are ready.
func launcherWaits(k Kind) Kind {
	k.turns = onePath("template.spec.mpiReplicaSpecs.Launcher.template", OneByOne, func(object map[string]any) bool {
		return text(object, "spec", "launcherCreationPolicy") == "WaitForWorkersReady"
	})
	return k
}
