// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;watch;create;delete

// mpiJob is the MPIJob of the training operator, and mpiJobV2 that of the MPI operator. They
// share nothing but the name of the resource, and a cluster can have only one of them.
var (
	mpiJob   = ofMPI("v1").namedBy(jobNameLabel).with(mpiVolumes)
	mpiJobV2 = launcherWaits(ofMPI("v2beta1")).namedBy(mpiWorkers).with(mpiVolumes)
)

const (
	mpiRoles = "mpiReplicaSpecs"
	launcher = "Launcher"
	mpiWork  = "Worker"
)

// ofMPI differs from other Kubeflow jobs in how many pods its roles have, and no role of none gets one.
func ofMPI(version string) Kind {
	k := kubeflowJob(version, "MPIJob", mpiRoles, "", launcher, mpiWork)
	k.podSets = mpiPodSets
	k.uncounted = nil
	k.faults = func(object map[string]any) []Fault {
		faults := append(wrongRestarts(object, version, mpiRoles), withoutLauncher(object)...)
		if version == "v2beta1" {
			faults = append(faults, wrongMPIReplicas(object)...)
		}
		return faults
	}
	return k
}

// mpiPodSets: there is one launcher, whatever its replicas are, and there are no workers unless it says how many.
func mpiPodSets(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	for _, role := range slices.Sorted(maps.Keys(withTemplate(object, mpiRoles))) {
		if role != launcher && role != mpiWork {
			return nil, fmt.Errorf("spec.%s has the role %q, which should be one of: %s, %s", mpiRoles, role, launcher, mpiWork)
		}
	}
	podSets, err := rolePodSets(object, mpiRoles, []string{launcher, mpiWork})
	for i := range podSets {
		switch {
		case strings.HasSuffix(podSets[i].Path, launcher+".template"):
			podSets[i].Replicas = new(int32(1))
		case !present(object, "spec", mpiRoles, mpiWork, "replicas"):
			podSets[i].Replicas = new(int32(0))
		}
	}
	return podSets, err
}

// withoutLauncher: the training operator crashes over a job without a launcher, and over workers without a template.
func withoutLauncher(object map[string]any) []Fault {
	for _, role := range []string{launcher, mpiWork} {
		there := role == launcher || present(object, "spec", mpiRoles, role)
		if there && !withTemplate(object, mpiRoles)[role] {
			return []Fault{{Path: "spec." + mpiRoles, Value: "…", Why: "must have " + role + " with a template: the operator would make no pods"}}
		}
	}
	return nil
}

// wrongMPIReplicas are those that the MPI operator does not accept.
func wrongMPIReplicas(object map[string]any) (faults []Fault) {
	if n := number(object, "spec", mpiRoles, launcher, "replicas"); n != 1 {
		faults = append(faults, Fault{Path: "spec." + mpiRoles + ".Launcher.replicas", Value: strconv.Itoa(int(n)), Why: "must be 1"})
	}
	if n := numberOr(0, object, "spec", mpiRoles, mpiWork, "replicas"); n < 1 && present(object, "spec", mpiRoles, mpiWork) {
		faults = append(faults, Fault{Path: "spec." + mpiRoles + ".Worker.replicas", Value: strconv.Itoa(int(n)), Why: "must be at least 1"})
	}
	return faults
}

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
