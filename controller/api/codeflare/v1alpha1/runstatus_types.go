// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RunPhase says in one word how far a Run is.
type RunPhase string

// Phases. Succeeded, Failed and Cancelled are final.
const (
	// RunPending: there is no AppWrapper yet. The condition Accepted says why.
	RunPending RunPhase = "Pending"
	// RunQueued: it waits for quota.
	RunQueued RunPhase = "Queued"
	// RunStarting: it has quota, and not all its pods are ready.
	RunStarting RunPhase = "Starting"
	// RunRunning: all its pods are ready.
	RunRunning RunPhase = "Running"
	// RunRetrying: it failed, and is started again.
	RunRetrying RunPhase = "Retrying"
	// RunPreempted: its quota is taken away, and its pods end.
	RunPreempted RunPhase = "Preempted"
	// RunSucceeded: its program ended well.
	RunSucceeded RunPhase = "Succeeded"
	// RunFailed: it is not tried again. The condition Failed says why.
	RunFailed RunPhase = "Failed"
	// RunCancelled: its author cancelled it.
	RunCancelled RunPhase = "Cancelled"
)

// Terminal is true of phases that no other follows.
func (p RunPhase) Terminal() bool {
	return p == RunSucceeded || p == RunFailed || p == RunCancelled
}

// Types of the conditions of a Run.
const (
	// Accepted: all that the Run names is there and fits together.
	Accepted = "Accepted"
	// QuotaReserved: Kueue has admitted its AppWrapper.
	QuotaReserved = "QuotaReserved"
	// PodsReady: all its pods are ready.
	PodsReady = "PodsReady"
	// Complete: its program ended well.
	Complete = "Complete"
	// Failed: it ended in another way.
	Failed = "Failed"
)

// RunStatus says how far a Run is. Only the controller of Runs writes it.
type RunStatus struct {
	// ObservedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase is the state in one word.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`

	// Message is the state in one sentence.
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions are Accepted, QuotaReserved, PodsReady, Complete and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Resolved is what the Run got when it was accepted.
	// +optional
	Resolved *Resolved `json:"resolved,omitempty"`

	// AppWrapper is what does the work. Once it is recorded, no other is made.
	// +optional
	AppWrapper *AppWrapperReference `json:"appWrapper,omitempty"`

	// Steps are those of a workflow, as they were when the Run was accepted. Each has an AppWrapper
	// of its own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Steps []StepStatus `json:"steps,omitempty"`

	// Retries is how often the work was started again after a failure.
	// +optional
	Retries int32 `json:"retries,omitempty"`

	// StartTime is when all pods were ready for the first time. A deadline counts from here.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the Run came to its final phase.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Commit is that of the code in a repository, once the Run has ended.
	// +optional
	Commit string `json:"commit,omitempty"`

	// Queue has the counts of a work queue, once it has ended.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`

	// LastFailure is the first container that failed in the last attempt that did.
	// +optional
	LastFailure *LastFailure `json:"lastFailure,omitempty"`
}

// Resolved is what a Run got.
type Resolved struct {
	// ApplicationGeneration is the metadata.generation of the Application that was planned.
	ApplicationGeneration int64 `json:"applicationGeneration"`

	// Size is the name of its size.
	Size string `json:"size"`

	// Workers is the number of its workers.
	Workers int32 `json:"workers"`

	// PerWorker are the resources of each worker.
	PerWorker map[corev1.ResourceName]resource.Quantity `json:"perWorker"`

	// Queue is the LocalQueue that the Run names, empty for the default one.
	// +optional
	Queue string `json:"queue,omitempty"`

	// Repo is where its code is, empty unless that is in a repository.
	// +optional
	Repo string `json:"repo,omitempty"`

	// PriorityClass is that of its pods.
	PriorityClass string `json:"priorityClass"`
}

// AppWrapperReference names an AppWrapper of the Run's namespace.
type AppWrapperReference struct {
	// Name is that of what does the work.
	Name string `json:"name"`
	// UID is its UID. Once it is recorded, no other is made.
	UID types.UID `json:"uid"`
}

// LastFailure says how a container of a Run failed.
type LastFailure struct {
	// Attempt counts from 1.
	Attempt int32 `json:"attempt"`

	// Step is the name of the step, if the Run is a workflow.
	// +optional
	Step string `json:"step,omitempty"`

	// Pod is the name of the container's pod, which may be gone.
	Pod string `json:"pod"`

	// Container is its name, empty if the pod failed as a whole.
	// +optional
	Container string `json:"container,omitempty"`

	// ExitCode is the container's.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// Reason is Kubernetes': Error, OOMKilled, Evicted and others.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message has the last lines of its log, at most 1,024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}
