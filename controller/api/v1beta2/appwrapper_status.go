// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppWrapperStatus is what the controller has promised and observed.
type AppWrapperStatus struct {
	// Phase is where the AppWrapper is in its life.
	// +optional
	Phase AppWrapperPhase `json:"phase,omitempty"`

	// PhaseTransitionTime is when the present phase began. It is an addition of this
	// controller: where it is missing, timers count from the youngest condition.
	// +optional
	PhaseTransitionTime *metav1.Time `json:"phaseTransitionTime,omitempty"`

	// Retries is how often the workload has been reset because of a failure.
	// +optional
	Retries int32 `json:"resettingCount,omitempty"`

	// StartupRetries is how many of these resets came before enough pods ran in their attempt: components
	// were refused, or pods did not start in time. It has a limit of its own. It is an addition
	// of this controller: where it is dropped, each such reset counts as any other failure does.
	// +optional
	StartupRetries int32 `json:"startupRetries,omitempty"`

	// FailureRetries is how many of them came for any other reason: Retries less StartupRetries. It is an addition of
	// this controller.
	// +optional
	FailureRetries int32 `json:"failureRetries,omitempty"`

	// Migrations is how often the workload has been reset to leave unhealthy nodes, which
	// is no failure of its own. It is an addition of this controller: where it is dropped,
	// the count begins at 0 again.
	// +optional
	Migrations int32 `json:"migrations,omitempty"`

	// Preemptions is how often other work took the quota. It is an addition of this controller: where it is dropped,
	// the count begins at 0 again.
	// +optional
	Preemptions int32 `json:"preemptions,omitempty"`

	// LastAttempts are the attempts that ended without success, the latest last: three at most, and 12 KiB in all. It
	// is an addition of this controller: where it is dropped, nobody can read how an attempt ended whose pods are gone.
	// +optional
	// +listType=atomic
	LastAttempts []AppWrapperAttempt `json:"lastAttempts,omitempty"`

	// AvoidedNodes are the nodes to blame for earlier failures, the latest last. Pods of a new
	// attempt keep away from them. It is an addition of this controller: where it is dropped,
	// pods may be sent to such nodes again.
	// +optional
	// +listType=atomic
	AvoidedNodes []AvoidedNode `json:"avoidedNodes,omitempty"`

	// FailedNode is the node on which the program of this AppWrapper failed, if it failed on no
	// other. It is forgotten when pods of a later attempt run there. It is an addition of this
	// controller: where it is dropped, nobody learns from the failure.
	// +optional
	FailedNode *FailedNode `json:"failedNode,omitempty"`

	// Usage is what the time was used for in which quota was reserved. It is an addition of this
	// controller: where it is dropped, the count begins at 0 again.
	// +optional
	Usage *AppWrapperUsage `json:"usage,omitempty"`

	// Conditions describe quota, deployment, readiness, health and deletion.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ComponentStatus has one entry for each component, in the same order.
	// +optional
	// +listType=atomic
	ComponentStatus []AppWrapperComponentStatus `json:"componentStatus,omitempty"`
}

// AppWrapperAttempt is an attempt that ended without success.
type AppWrapperAttempt struct {
	// Began is when the creation of the components began.
	Began metav1.Time `json:"began"`

	// Ended is when it was noticed that the attempt was over.
	Ended metav1.Time `json:"ended"`

	// Cause is the cause of the move to another phase, as in the metric appwrapper_transitions_total.
	Cause string `json:"cause"`

	// Reason is the reason of the condition Requeued or Deactivated if the quota was taken back, or OOMKilled or
	// Evicted if the first container failed so.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Pod is the pod that failed first. What follows is about it, and absent if no pod that is there has failed.
	// +optional
	Pod string `json:"pod,omitempty"`

	// PodSet is the index of its pod set among all of the AppWrapper.
	// +optional
	PodSet *int32 `json:"podSet,omitempty"`

	// Rank is its number in the pod set, if its kind numbers pods.
	// +optional
	Rank string `json:"rank,omitempty"`

	// Node of the pod; or, without a pod, a node that the attempt had to leave.
	// +optional
	Node string `json:"node,omitempty"`

	// Container that failed.
	// +optional
	Container string `json:"container,omitempty"`

	// ExitCode of the container.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`

	// RanSeconds is how long the container ran; absent if that is not known.
	// +optional
	RanSeconds *int64 `json:"ranSeconds,omitempty"`

	// FailedByItself is set if nothing is known that may have failed the container from outside: all pods had started,
	// and none failed, left, or was evicted before it or in the same second.
	// +optional
	FailedByItself bool `json:"failedByItself,omitempty"`

	// LastWords are what its program wrote last. It is text of the program, to be shown and not to be interpreted.
	// +optional
	LastWords string `json:"lastWords,omitempty"`
}

// AvoidedNode is a node that pods keep away from.
type AvoidedNode struct {
	// Name of the node.
	Name string `json:"name"`

	// Cause is what was wrong with it.
	Cause string `json:"cause"`

	// Since is when it failed. It is absent where an earlier version has written this.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Until is when it is forgotten.
	Until metav1.Time `json:"until"`
}

// FailedNode is a node on which a program failed. Only that the same program does well elsewhere
// says something about the node.
type FailedNode struct {
	// Name of the node.
	Name string `json:"name"`

	// Cause is how the program ended there.
	Cause string `json:"cause"`

	// LastedSeconds is how long the attempt lasted, from when the node began with its pods.
	LastedSeconds int64 `json:"lastedSeconds"`

	// Until is when it is forgotten.
	Until metav1.Time `json:"until"`
}

// AppWrapperUsage has the seconds for which quota was reserved, each in one class. Package
// controller/ledger says which.
type AppWrapperUsage struct {
	// At is until when time is counted. What comes after is counted with the next change of the
	// status.
	At metav1.Time `json:"at"`

	// StartingSeconds: until enough pods ran.
	// +optional
	StartingSeconds int64 `json:"startingSeconds,omitempty"`

	// InFlightSeconds are of the present attempt. When it ends, they become useful or lost.
	// +optional
	InFlightSeconds int64 `json:"inFlightSeconds,omitempty"`

	// IdleSeconds: from when its author was told that no pod uses its devices.
	// +optional
	IdleSeconds int64 `json:"idleSeconds,omitempty"`

	// UsefulSeconds: work that succeeded, or that a checkpoint saved.
	// +optional
	UsefulSeconds int64 `json:"usefulSeconds,omitempty"`

	// LostToNodeSeconds: work that was lost because of unhealthy nodes.
	// +optional
	LostToNodeSeconds int64 `json:"lostToNodeSeconds,omitempty"`

	// LostToFailureSeconds: work that was lost because it failed.
	// +optional
	LostToFailureSeconds int64 `json:"lostToFailureSeconds,omitempty"`

	// LostToHangSeconds: work that was lost because it made no progress.
	// +optional
	LostToHangSeconds int64 `json:"lostToHangSeconds,omitempty"`

	// LostToPreemptionSeconds: work that was lost because the quota was taken back.
	// +optional
	LostToPreemptionSeconds int64 `json:"lostToPreemptionSeconds,omitempty"`

	// PausingSeconds: between two attempts.
	// +optional
	PausingSeconds int64 `json:"pausingSeconds,omitempty"`

	// EndingSeconds: while components were removed.
	// +optional
	EndingSeconds int64 `json:"endingSeconds,omitempty"`

	// HeldSeconds: while the components of a failed AppWrapper were kept.
	// +optional
	HeldSeconds int64 `json:"heldSeconds,omitempty"`
}

// AppWrapperComponentStatus is what is known about one component.
type AppWrapperComponentStatus struct {
	// Name of the resource; empty until its creation has been promised.
	Name string `json:"name"`

	// Kind of the resource.
	Kind string `json:"kind"`

	// APIVersion of the resource.
	APIVersion string `json:"apiVersion"`

	// PodSets is the authoritative list of the component's pod sets. It is computed
	// once and never changes afterwards: Kueue suspends the AppWrapper when it does.
	// +listType=atomic
	PodSets []AppWrapperPodSet `json:"podSets"`

	// SucceededPods is how many pods of each pod set have succeeded in this attempt and are gone. It is written only
	// where the resource itself does not say so.
	// +optional
	// +listType=atomic
	SucceededPods []int32 `json:"succeededPods,omitempty"`

	// SucceededPodsUntil is the resourceVersion with which the last pod went that SucceededPods counts. A process that
	// takes over has heard of some of them, too, and counts only what went later.
	// +optional
	SucceededPodsUntil string `json:"succeededPodsUntil,omitempty"`

	// Conditions: ResourcesDeployed and, as an addition of this controller, Succeeded.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MarshalJSON writes podSets as a list even where there is none: the schema
// requires the field, and null would be refused by the API server.
func (s AppWrapperComponentStatus) MarshalJSON() ([]byte, error) {
	type plain AppWrapperComponentStatus
	if s.PodSets == nil {
		s.PodSets = []AppWrapperPodSet{}
	}
	return json.Marshal(plain(s))
}
