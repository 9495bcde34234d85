// SPDX-License-Identifier: Apache-2.0

package work

import (
	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// Stages are the same words for all kinds of work.
const (
	// Queued: it waits for quota.
	Queued = "Queued"
	// Starting: it has quota, and not all its pods are ready.
	Starting = "Starting"
	// Running: all its pods are ready.
	Running = "Running"
	// Retrying: something has failed, and it is started again.
	Retrying = "Retrying"
	// Preempted: its quota was taken back, and it waits for quota again.
	Preempted = "Preempted"
	// Stopping: it was deleted or switched off, and its pods end.
	Stopping = "Stopping"
	// Succeeded: it has ended well.
	Succeeded = "Succeeded"
	// Failed: it has ended, and is not started again.
	Failed = "Failed"
	// Cancelled: its author has ended a Run.
	Cancelled = "Cancelled"
	// Ended: it is a bare job that has ended, and its Workload says neither well nor badly.
	Ended = "Ended"
)

// Stages are all of them, in the order of a life.
func Stages() []string {
	return []string{Queued, Starting, Running, Retrying, Preempted, Stopping, Succeeded, Failed, Cancelled, Ended}
}

// stageOf is the stage of an AppWrapper.
func stageOf(aw *v1beta2.AppWrapper) string {
	holds := func(condition v1beta2.AppWrapperCondition) bool {
		return meta.IsStatusConditionTrue(aw.Status.Conditions, string(condition))
	}
	again := aw.Status.Retries+aw.Status.StartupRetries+aw.Status.Migrations > 0
	switch phase := aw.Status.Phase; {
	case aw.DeletionTimestamp != nil, phase == v1beta2.AppWrapperTerminating, phase == v1beta2.AppWrapperSuspending && holds(v1beta2.Deactivated):
		return Stopping
	case phase == v1beta2.AppWrapperSucceeded, phase == v1beta2.AppWrapperFailed:
		return string(phase)
	case phase == v1beta2.AppWrapperSuspending, holds(v1beta2.Requeued):
		return Preempted
	case phase == v1beta2.AppWrapperResetting, phase == v1beta2.AppWrapperResuming && again:
		return Retrying
	case phase == v1beta2.AppWrapperRunning && holds(v1beta2.PodsReady):
		return Running
	case phase == v1beta2.AppWrapperRunning, phase == v1beta2.AppWrapperResuming:
		return Starting
	}
	return Queued
}

// stageOfRun is the Run's own phase, except that Pending is a word of its controller, and that it is preempted until
// its only AppWrapper has quota again.
func stageOfRun(run *v1alpha1.Run, aw *v1beta2.AppWrapper) string {
	switch phase := run.Status.Phase; {
	case run.DeletionTimestamp != nil:
		return Stopping
	case phase == "", phase == v1alpha1.RunPending:
		return Queued
	case phase == v1alpha1.RunQueued && aw != nil && stageOf(aw) == Preempted:
		return Preempted
	default:
		return string(phase)
	}
}

// stageOfBare is the stage of a bare job, of which Kueue does not know whether its pods are ready: those that wait are
// among these objects. It is in a queue.
func stageOfBare(o explain.Objects, state string) string {
	switch {
	case state == Succeeded, state == Failed, state == Ended:
		return state
	case o.Job.GetDeletionTimestamp() != nil:
		return Stopping
	case meta.IsStatusConditionTrue(o.Workload.Status.Conditions, kueue.WorkloadEvicted):
		return Preempted
	case state == reserved, state == admitted && waits(o):
		return Starting
	case state == admitted:
		return Running
	}
	return Queued
}

// waits reports whether a pod is not ready.
func waits(o explain.Objects) bool {
	for i := range o.Pods {
		if o.Pods[i].Status.Phase == "Pending" {
			return true
		}
	}
	return false
}
