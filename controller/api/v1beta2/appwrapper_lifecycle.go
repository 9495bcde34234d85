// SPDX-License-Identifier: Apache-2.0

package v1beta2

// AppWrapperPhase is a place in the life of an AppWrapper.
type AppWrapperPhase string

// The phases. docs/lifecycle.md draws the moves between them.
const (
	// AppWrapperEmpty: nobody has looked at the AppWrapper yet.
	AppWrapperEmpty AppWrapperPhase = ""
	// AppWrapperSuspended: nothing is deployed; it waits for quota.
	AppWrapperSuspended AppWrapperPhase = "Suspended"
	// AppWrapperResuming: quota is reserved and the components are being created.
	AppWrapperResuming AppWrapperPhase = "Resuming"
	// AppWrapperRunning: all components are deployed and are being watched.
	AppWrapperRunning AppWrapperPhase = "Running"
	// AppWrapperResetting: the components are being removed, to be tried again.
	AppWrapperResetting AppWrapperPhase = "Resetting"
	// AppWrapperSuspending: the components are being removed, to give the quota back.
	AppWrapperSuspending AppWrapperPhase = "Suspending"
	// AppWrapperSucceeded: the work is done.
	AppWrapperSucceeded AppWrapperPhase = "Succeeded"
	// AppWrapperFailed: the work has failed for good.
	AppWrapperFailed AppWrapperPhase = "Failed"
	// AppWrapperTerminating: the AppWrapper was deleted; its components are being removed.
	AppWrapperTerminating AppWrapperPhase = "Terminating"
)

// AppWrapperCondition is the type of a condition.
type AppWrapperCondition string

// The types of an AppWrapper's conditions.
const (
	// QuotaReserved is True from the first permission to deploy until no pod can
	// use the quota any more. Kueue gives the quota to others when it turns False.
	QuotaReserved AppWrapperCondition = "QuotaReserved"
	// ResourcesDeployed is True while components exist or may exist. In Failed, those that make
	// no pods and that finalizers keep do not count.
	ResourcesDeployed AppWrapperCondition = "ResourcesDeployed"
	// PodsReady is True while enough pods are running or have succeeded.
	PodsReady AppWrapperCondition = "PodsReady"
	// Unhealthy is True while something is wrong with the components or their pods.
	Unhealthy AppWrapperCondition = "Unhealthy"
	// DeletingResources is True while components are being removed.
	DeletingResources AppWrapperCondition = "DeletingResources"
	// OnUnhealthyNodes is True while pods use unhealthy resources of their nodes and do not
	// leave, because the limit of migrations is reached. It is an addition of this controller.
	OnUnhealthyNodes AppWrapperCondition = "OnUnhealthyNodes"
	// SurplusPods is True while more pods carry the AppWrapper's label, or they use more
	// devices, than its pod sets declare. It is an addition of this controller.
	SurplusPods AppWrapperCondition = "SurplusPods"
	// Idle is True when no pod has used its devices for half of the idle grace, until one does, or until
	// the next attempt begins. It is an addition of this controller.
	Idle AppWrapperCondition = "Idle"
	// ComputesWithoutProgress is True while a pod has not been ready for the no-progress grace, and the AppWrapper
	// is not reset, because devices compute. If the attempt ends, it stays until the next begins. It is an addition
	// of this controller.
	ComputesWithoutProgress AppWrapperCondition = "ComputesWithoutProgress"

	// Finished is True when the work has succeeded or failed for good, with the reason Succeeded or Failed. It is
	// absent before, and never taken back. It is an addition of this controller.
	Finished AppWrapperCondition = "Finished"
	// Requeued is True while work that had quota waits for quota again. Its reason is Kueue's for taking the quota
	// back. It is an addition of this controller.
	Requeued AppWrapperCondition = "Requeued"
	// Deactivated is True while nobody starts the work, because its Workload is deactivated. It ends when somebody
	// activates that again. It is an addition of this controller.
	Deactivated AppWrapperCondition = "Deactivated"

	// ComponentSucceeded is a component's own condition: True once the component has
	// reported success in the present attempt. It outlives the component, so that a
	// finished Job that cleans itself up is not taken for a lost one.
	ComponentSucceeded AppWrapperCondition = "Succeeded"
	// ComponentRefused is a component's own condition: True from when its creation was first
	// refused in the present attempt until it is created. Time in which no attempt was made
	// does not count. It is an addition of this controller.
	ComponentRefused AppWrapperCondition = "CreationRefused"
	// ComponentUnanswered is a component's own condition: True from when the API server, or a
	// webhook that it asks, does not answer its creation. It is an addition of this controller.
	ComponentUnanswered AppWrapperCondition = "CreationUnanswered"
)

// The reasons of an AppWrapper's conditions that are not the name of a phase.
const (
	// ReasonAdmitted: there is quota, which the components use or may use. It is an addition of this
	// controller: AppWrapper 1.2 has the name of the phase here.
	ReasonAdmitted = "Admitted"
	// ReasonSufficientPodsReady: running and succeeded pods are as many as expected.
	ReasonSufficientPodsReady = "SufficientPodsReady"
	// ReasonInsufficientPodsReady: running and succeeded pods are fewer than expected.
	ReasonInsufficientPodsReady = "InsufficientPodsReady"
	// ReasonCreateFailed: a component could not be created.
	ReasonCreateFailed = "CreateFailed"
	// ReasonMissingComponent: somebody else removed a deployed component.
	ReasonMissingComponent = "MissingComponent"
	// ReasonFailedComponent: a component reports that it has failed.
	ReasonFailedComponent = "FailedComponent"
	// ReasonFoundFailedPods: pods have failed and have not been replaced.
	ReasonFoundFailedPods = "FoundFailedPods"
	// ReasonFoundNoFailedPods: what was wrong has mended itself.
	ReasonFoundNoFailedPods = "FoundNoFailedPods"
	// ReasonAutopilotNoExecute: pods run on nodes that must be left.
	ReasonAutopilotNoExecute = "AutopilotNoExecute"
	// ReasonMigrationLimitReached: the workload has left unhealthy nodes as often as it may.
	ReasonMigrationLimitReached = "MigrationLimitReached"
	// ReasonNodesHealthy: no pod uses an unhealthy resource of its node any more.
	ReasonNodesHealthy = "NodesHealthy"
	// ReasonCrashLoop: the program of a pod crashes, and its kubelet starts it again and again.
	ReasonCrashLoop = "CrashLoop"
	// ReasonNoProgress: a pod has not been ready for longer than the no-progress grace.
	ReasonNoProgress = "NoProgress"
	// ReasonDevicesCompute: the query of the administrator says that devices of a pod compute.
	ReasonDevicesCompute = "DevicesCompute"
	// ReasonProgressMade: no pod is unready for the no-progress grace any more.
	ReasonProgressMade = "ProgressMade"
	// ReasonDevicesIdle: no pod uses its devices.
	ReasonDevicesIdle = "DevicesIdle"
	// ReasonDevicesUsed: a pod uses its devices again.
	ReasonDevicesUsed = "DevicesUsed"
	// ReasonSurplusPods: pods exceed the pod sets for longer than the failure grace.
	ReasonSurplusPods = "SurplusPods"
	// ReasonNoSurplusPods: pods do not exceed the pod sets any more.
	ReasonNoSurplusPods = "NoSurplusPods"
	// ReasonDeletionInitiated: the removal of components has begun.
	ReasonDeletionInitiated = "DeletionInitiated"
	// ReasonDeletionComplete: neither components nor pods are left.
	ReasonDeletionComplete = "DeletionComplete"
	// ReasonDeletionPaused: a failed workload is kept for its user to look at.
	ReasonDeletionPaused = "DeletionPaused"
)

// The reasons of a component's conditions.
const (
	// ReasonComponentCreationInitiated: the component is about to be created.
	ReasonComponentCreationInitiated = "ComponentCreationInitiated"
	// ReasonComponentCreatedSuccessfully: the component has been seen.
	ReasonComponentCreatedSuccessfully = "ComponentCreatedSuccessfully"
	// ReasonComponentCreationErrored: the last attempt to create it did not work;
	// another one may.
	ReasonComponentCreationErrored = "ComponentCreationErrored"
	// ReasonComponentCreationRejected: no further attempt to create it can work. It is
	// an addition of this controller.
	ReasonComponentCreationRejected = "ComponentCreationRejected"
	// ReasonComponentDeleted: the component was removed. Older controllers wrote
	// "CompononetDeleted"; nothing reads either.
	ReasonComponentDeleted = "ComponentDeleted"
	// ReasonComponentSucceeded: the component's own status says that it is done.
	ReasonComponentSucceeded = "ComponentSucceeded"
)
