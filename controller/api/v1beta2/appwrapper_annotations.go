// SPDX-License-Identifier: Apache-2.0

package v1beta2

// Names that are written into objects of the cluster.
const (
	// AppWrapperControllerName is the value of spec.managedBy that means this controller.
	AppWrapperControllerName = "workload.codeflare.dev/appwrapper-controller"

	// AppWrapperLabel is on every component and pod of an AppWrapper; its value is the
	// AppWrapper's name.
	AppWrapperLabel = "workload.codeflare.dev/appwrapper"

	// AppWrapperComponentLabel is on every pod of an AppWrapper; its value is the index
	// of the component whose pod set the pod belongs to. It is an addition of this
	// controller, and pods without it are understood.
	AppWrapperComponentLabel = "workload.codeflare.dev/component"

	// AppWrapperPodSetLabel is on every pod of an AppWrapper; its value is the index of the pod set among those of
	// its component. It is an addition of this controller, and pods without it are understood.
	AppWrapperPodSetLabel = "workload.codeflare.dev/pod-set"

	// AttemptLabel is on every pod of an AppWrapper; its value is the AppWrapper's UID, a dot, and when the attempt
	// began that created the pod, in seconds. It is an addition of this controller, and pods without it are understood.
	AttemptLabel = "workload.codeflare.dev/attempt"

	// AttemptAnnotation is on every component; its value is when the attempt began that created it.
	// It is an addition of this controller.
	AttemptAnnotation = "workload.codeflare.dev/attempt"

	// UserLabel holds the name of the user who created the AppWrapper.
	UserLabel = "workload.codeflare.dev/user"

	// UserIDLabel holds the UID of the user who created the AppWrapper.
	UserIDLabel = "workload.codeflare.dev/userid"

	// QueueNameLabel names the LocalQueue that Kueue queues the AppWrapper in.
	QueueNameLabel = "kueue.x-k8s.io/queue-name"

	// AppWrapperFinalizer keeps a deleted AppWrapper until its components are gone.
	AppWrapperFinalizer = "workload.codeflare.dev/finalizer"
)

// LoweredLendingLimitsAnnotation is on ClusterQueues that lend less because of bad nodes. It has
// the lending limits that were lowered, and those of the administrator.
const LoweredLendingLimitsAnnotation = "workload.codeflare.dev/lowered-lending-limits"

// LargestNodeAnnotation is on ResourceFlavors. It has the most of each resource that a node of the flavor offers to
// pods, in JSON, for members: they cannot read nodes.
const LargestNodeAnnotation = "workload.codeflare.dev/largest-node"

// DeclaredLendingLimitsAnnotation is on ClusterQueues that the controller has made because the teams file has
// them. It has the lending limits of that file, so that those of an administrator can be told from them.
const DeclaredLendingLimitsAnnotation = "workload.codeflare.dev/declared-lending-limits"

// Annotations of nodes that failed unrelated work, where an administrator lets the controller cordon them.
const (
	// CordonedAnnotation: the controller has cordoned the node. Its value is when and why.
	CordonedAnnotation = "workload.codeflare.dev/cordoned"
	// UncordonedAnnotation is when the controller saw that somebody had uncordoned the node.
	UncordonedAnnotation = "workload.codeflare.dev/uncordoned"
)

// Annotations of Workloads for which Kueue is asked for other nodes, because it has assigned bad ones. Both have a list
// of nodes like status.avoidedNodes of an AppWrapper.
const (
	// ReassignAnnotation: the controller has deactivated the Workload, and activates it again when Kueue has its
	// quota back, with these nodes excluded. Without it, a person or another program has deactivated the Workload.
	ReassignAnnotation = "workload.codeflare.dev/reassign"
	// ReassignedAnnotation: that has been done. It has the nodes that are still excluded by their names.
	ReassignedAnnotation = "workload.codeflare.dev/reassigned"
)

// PodIdleCondition is the type of a condition of a pod. Whoever watches the devices of the nodes sets it to
// True while a pod does not use its own. lastTransitionTime is since when, and lastProbeTime is repeated.
const PodIdleCondition = "workload.codeflare.dev/Idle"

// AnnotationPrefix is what the controller's annotations have in common.
const AnnotationPrefix = "workload.codeflare.dev.appwrapper/"

// Annotations with which the author of an AppWrapper adjusts how it is looked after.
const (
	// AdmissionGracePeriodDurationAnnotation: how long creation of the components, and
	// of their pods, may take.
	AdmissionGracePeriodDurationAnnotation = AnnotationPrefix + "admissionGracePeriodDuration"
	// WarmupGracePeriodDurationAnnotation: how long pods may take to start.
	WarmupGracePeriodDurationAnnotation = AnnotationPrefix + "warmupGracePeriodDuration"
	// InitGracePeriodDurationAnnotation: how long each init container of a pod may run.
	InitGracePeriodDurationAnnotation = AnnotationPrefix + "initGracePeriodDuration"
	// FailureGracePeriodDurationAnnotation: how long failed or lost pods may take to be
	// replaced.
	FailureGracePeriodDurationAnnotation = AnnotationPrefix + "failureGracePeriodDuration"
	// RetryPausePeriodDurationAnnotation: how long to wait between two attempts.
	RetryPausePeriodDurationAnnotation = AnnotationPrefix + "retryPausePeriodDuration"
	// SameFailurePeriodDurationAnnotation: a program that ends with the same exit code so soon after its start in two
	// attempts is not tried again. 0s: it is. By default, it is if RetryLimitAnnotation is set.
	SameFailurePeriodDurationAnnotation = AnnotationPrefix + "sameFailurePeriodDuration"
	// RetryLimitAnnotation: how many times a failed workload is tried again. Without it the controller's configuration
	// counts, which has DefaultRetryLimit unless an administrator changes that.
	RetryLimitAnnotation = AnnotationPrefix + "retryLimit"
	// ForcefulDeletionGracePeriodAnnotation: how long pods may take to stop before they
	// are removed by force.
	ForcefulDeletionGracePeriodAnnotation = AnnotationPrefix + "forcefulDeletionGracePeriodDuration"
	// DeletionOnFailureGracePeriodAnnotation: how long the components of a failed
	// workload are kept for its author to look at.
	DeletionOnFailureGracePeriodAnnotation = AnnotationPrefix + "deletionOnFailureGracePeriodDuration"
	// SuccessTTLAnnotation: how long the components of a successful workload are kept.
	SuccessTTLAnnotation = AnnotationPrefix + "successTTLDuration"
	// TerminalExitCodesAnnotation: exit codes after which a retry is pointless.
	TerminalExitCodesAnnotation = AnnotationPrefix + "terminalExitCodes"
	// RetryableExitCodesAnnotation: the only exit codes after which a retry is of use.
	RetryableExitCodesAnnotation = AnnotationPrefix + "retryableExitCodes"
	// AvoidNodesAnnotation: false lets pods return to nodes that failed this workload.
	AvoidNodesAnnotation = AnnotationPrefix + "avoidNodes"
	// NoProgressGracePeriodDurationAnnotation: how long a pod with a readiness probe may run without being
	// ready. Then the attempt counts as failed. 0s: no limit.
	NoProgressGracePeriodDurationAnnotation = AnnotationPrefix + "noProgressGracePeriodDuration"
	// IdleGracePeriodDurationAnnotation: how long the pods may hold devices that they do not use. Then the
	// quota goes back. 0s: no limit.
	IdleGracePeriodDurationAnnotation = AnnotationPrefix + "idleGracePeriodDuration"
	// LastWordsAnnotation: false keeps what programs write last out of the status.
	LastWordsAnnotation = AnnotationPrefix + "lastWords"
	// LastCheckpointAnnotation: when the workload last saved what it had done, such as
	// 2026-11-24T17:05:00Z. What came before is not lost when it is stopped.
	LastCheckpointAnnotation = AnnotationPrefix + "lastCheckpoint"
)

// DefaultRetryLimit is how many times a failed workload is tried again if neither an annotation nor the
// controller's configuration says so.
const DefaultRetryLimit = 3

// Annotations of a pod set that describe it to Kueue's topology-aware scheduling.
const (
	// PodSetAnnotationTASPodIndexLabel names the label that numbers the pods.
	PodSetAnnotationTASPodIndexLabel = AnnotationPrefix + "tas-pod-index-label"
	// PodSetAnnotationTASSubGroupIndexLabel names the label that numbers the groups.
	PodSetAnnotationTASSubGroupIndexLabel = AnnotationPrefix + "tas-sub-group-index-label"
	// PodSetAnnotationTASSubGroupCount is the number of groups.
	PodSetAnnotationTASSubGroupCount = AnnotationPrefix + "tas-sub-group-count"
)
