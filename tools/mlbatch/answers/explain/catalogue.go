// SPDX-License-Identifier: Apache-2.0

package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// Code is the name of a cause. Programs can rely on it.
type Code string

// Entry describes a cause.
type Entry struct {
	Code   Code
	Means  string
	Remedy string
	// Evidence says where the cause can be seen.
	Evidence string
}

// Catalogue has all causes. testdata/causes.md prints it.
var Catalogue = []Entry{
	{"BeingDeleted", "it was deleted, and its resources are being removed", "wait until they are gone", "metadata.deletionTimestamp"},
	{"DeletionStuck", "it was deleted, but finalizers keep a resource", "find out why the owner of the finalizers does not remove them: is its operator running?", "condition DeletingResources of the AppWrapper"},
	{"RemovalStuck", "finalizers keep a resource of the last attempt, so it is neither started again nor gives up its quota", "find out why the owner of the finalizers does not remove them: is its operator running?", "condition DeletingResources of the AppWrapper"},
	{"PodsEnding", "its pods are ending, and have some time to do so", "wait until they are gone", "metadata.deletionTimestamp of the pod"},
	{"PodStuck", "a pod should be gone, and is not, as when its node does not answer or finalizers keep it", "look at the node; if it is gone for good, ask an administrator to delete it from the cluster", "metadata.deletionTimestamp and finalizers of the pod"},
	{"OtherController", "another controller manages it", "ask the administrator of that controller", "spec.managedBy of the AppWrapper"},
	{"ControllerSilent", "its controller has done nothing about it for more than two minutes", "ask an administrator whether the controller of AppWrappers, or of Runs, is running", "creationTimestamp, and the status, which is empty; or condition Admitted of the Workload"},
	{"OperatorSilent", "a resource that makes pods was created more than two minutes ago, and there are no pods", "look at the status of the resource; ask an administrator whether the operator of its kind is running", "conditions of the component, and the pods were looked for"},
	{"RunRefused", "what the Run names is missing or does not fit together", "do what the message says, and submit the Run again if it has failed", "condition Accepted of the Run"},
	{"RunFailed", "the Run failed, and is not tried again", "look at the failure, and use 'mlbatch retry'", "condition Failed of the Run"},
	{"RunCancelled", "its author cancelled the Run", "use 'mlbatch retry' to run it again", "status.phase of the Run"},
	{"StepFailed", "a step of the workflow failed, and is not tried again", "look at the message and the logs of the step; 'mlbatch retry' runs the workflow again", "status.steps of the Run"},
	{"StepRefused", "what a step of the workflow names is missing or does not fit together", "do what the message says: the step is tried again", "status.steps of the Run"},
	{"Succeeded", "the work is done", "nothing has to be done", "phase of the AppWrapper, or condition Finished of the Workload"},
	{"SuccessKept", "its resources are kept for some time after the success", "delete it to free the names earlier", "annotation successTTLDuration of the AppWrapper"},
	{"RetryLimit", "it failed as often as it may", "correct the program, and submit it again; the annotation retryLimit allows more retries", "phase and resettingCount of the AppWrapper"},
	{"TerminalExitCode", "it ended with an exit code after which it is not tried again", "correct the program, and submit it again", "container status of the pod, and annotations terminalExitCodes and retryableExitCodes"},
	{"SameFailure", "its program ended twice in the same way soon after its start, so it is not tried again", "mend the program, then use 'mlbatch retry'; an explicit retryLimit changes this", "condition Unhealthy and lastAttempts of the AppWrapper"},
	{"Failed", "it failed, and is not tried again", "do what the message says, and submit it again", "condition Unhealthy of the AppWrapper, or condition Finished of the Workload"},
	{"EndUnknown", "Kueue has ended its Workload without the success or the failure of the job", "look at the job itself: it may run on with another Workload, or be gone", "condition Finished of the Workload"},
	{"HeldForDebugging", "its resources and its quota are kept for you to look at", "delete it as soon as you have seen enough: the quota becomes free", "condition DeletingResources of the AppWrapper, reason DeletionPaused"},
	{"Retrying", "it failed, and is started again after a pause", "look at the logs of the failed pod; correct the program if it fails again", "phase and condition Unhealthy of the AppWrapper"},
	{"StartedTooSlowly", "its pods were not ready in time", "find out why they do not become ready; the annotation warmupGracePeriodDuration gives them more time", "condition Unhealthy of the AppWrapper, reason InsufficientPodsReady"},
	{"OldComponentRemains", "a resource of the last attempt did not go away in time", "find out what keeps it: finalizers, or an operator that is not running", "condition Unhealthy of the AppWrapper, reason CreateFailed"},
	{"WaitsForReplacement", "pods failed, and their owner may replace them for some time", "look at the logs of the failed pods", "condition Unhealthy of the AppWrapper, reason FoundFailedPods"},
	{"ComponentFailed", "a wrapped resource reports that it failed", "look at the status and the pods of that resource", "condition Unhealthy of the AppWrapper, reason FailedComponent"},
	{"ComponentMissing", "someone removed a wrapped resource", "submit it again, and delete the AppWrapper instead of its resources", "condition Unhealthy of the AppWrapper, reason MissingComponent"},
	{"Deactivated", "the Workload was deactivated", "set spec.active of the Workload to true, or submit it again", "spec.active of the Workload"},
	{"GivenBack", "its pods did not use their devices for the time that its author or its team chose, so its quota went back", "submit it again when you need it", "condition Evicted of the Workload, reason DeactivatedDueToIdle"},
	{"RequeuingLimit", "Kueue deactivated it: its pods were not ready in time too often", "find out why its pods do not become ready, and submit it again", "condition Evicted of the Workload"},
	{"MaxExecutionTime", "Kueue deactivated it: it ran for longer than it may", "submit it again with more time: the label kueue.x-k8s.io/max-exec-time-seconds", "condition Evicted of the Workload"},
	{"PausedAfterPreemptions", "it was preempted again and again, and waits for some time before it is queued again", "wait; or submit it again as new work, which does not wait", "status.requeueState and status.schedulingStats of the Workload"},
	{"HeldAfterPreemptions", "it was preempted again and again, and waits until the work that preempted it last has ended", "wait; or submit it again as new work, which does not wait", "status.requeueState and status.schedulingStats of the Workload"},
	{"PreemptedInQueue", "more important work of the same queue took its quota", "wait, or use a higher priority", "condition Preempted of the Workload, reason InClusterQueue"},
	{"PreemptedReclaimed", "it ran on borrowed quota, which its owner has taken back", "wait, or ask an administrator for more quota of your own", "condition Preempted of the Workload, reason InCohortReclamation"},
	{"PreemptedFairSharing", "it lost its quota to a team that has less than its fair share", "wait until your team uses less", "condition Preempted of the Workload, reason InCohortFairSharing"},
	{"PreemptedWhileBorrowing", "more important work of another team, which borrows, took its quota", "wait, or use a higher priority", "condition Preempted of the Workload, reason InCohortReclaimWhileBorrowing"},
	{"Preempted", quotareason.Sentence(quotareason.Preempted), "wait: it is admitted again when there is quota", "condition Preempted of the Workload"},
	{"PodsReadyTimeout", quotareason.Sentence(quotareason.PodsReadyTimeout), "find out why its pods do not become ready", "condition Evicted of the Workload, reason PodsReadyTimeout"},
	{"EvictedByStop", "an administrator stopped the queue, and it was evicted", "ask an administrator when the queue is started again", "condition Evicted of the Workload"},
	{"EvictedByCheck", "it lost its quota, because an admission check has to be done again", "wait, or ask an administrator about the admission check", "condition Evicted of the Workload, reason AdmissionCheck"},
	{"EvictedByNodes", "Kueue evicted it, because nodes that it had been given failed", "wait", "condition Evicted of the Workload, reason NodeFailures; or annotations workload.codeflare.dev/reassign and reassigned of the Workload"},
	{"Evicted", "Kueue evicted it", "do what the message says", "condition Evicted of the Workload"},
	{"LocalQueueMissing", "its namespace has no queue of that name", "correct the label kueue.x-k8s.io/queue-name: 'kubectl get localqueues' lists the queues", "the LocalQueue was looked for"},
	{"ClusterQueueMissing", "the ClusterQueue of its queue does not exist", "ask an administrator to create it", "the ClusterQueue was looked for, or the status of the LocalQueue"},
	{"LocalQueueStopped", "its queue is stopped", "ask who administers the queue to set stopPolicy to None", "spec.stopPolicy of the LocalQueue"},
	{"ClusterQueueStopped", "the ClusterQueue of its queue is stopped", "ask an administrator to set stopPolicy to None", "spec.stopPolicy of the ClusterQueue"},
	{"QueueInactive", "its queue is not active", "ask an administrator to do what the message says", "condition Active of the LocalQueue or the ClusterQueue"},
	{"QueueTerminating", "its queue is being deleted", "use another queue", "condition Active of the ClusterQueue"},
	{"QueueLacksFlavor", "its queue names a ResourceFlavor that does not exist", "ask an administrator to create it", "condition Active of the ClusterQueue"},
	{"QueueLacksTopology", "a flavor of its queue names a Topology that does not exist", "ask an administrator to create it", "condition Active of the ClusterQueue"},
	{"QueueLacksCheck", "its queue names an AdmissionCheck that does not exist", "ask an administrator to create it", "condition Active of the ClusterQueue"},
	{"QueueCheckInactive", "an AdmissionCheck of its queue is not active", "ask an administrator whether the controller of the check is running", "condition Active of the ClusterQueue"},
	{"NoWorkload", "Kueue has not made a Workload for it", "if it stays so, ask an administrator whether Kueue runs and manages this kind and namespace", "the Workload was looked for"},
	{"NotStarted", "Kueue has admitted it more than two minutes ago, and has not started it", "ask an administrator what Kueue's log says about it: somebody may refuse what Kueue changes", "condition Admitted of the Workload, and spec.suspend of the AppWrapper"},
	{"KueueMissing", "the cluster does not serve the kinds of Kueue", "ask an administrator to install Kueue", "the kinds were asked for"},
	{"UnknownPriority", "it names a WorkloadPriorityClass that does not exist, so Kueue does not queue it", "correct the label kueue.x-k8s.io/priority-class: 'kubectl get workloadpriorityclasses' lists the classes", "the WorkloadPriorityClass was looked for"},
	{"NotQueued", "it has no queue, and Kueue ignores work without one", "set the label kueue.x-k8s.io/queue-name", "labels of the job, or condition QuotaReserved of the Workload"},
	{"BehindInStrictQueue", "other work is ahead of it, and its queue lets nothing overtake", "wait, or use a higher priority; look why the first in the queue waits", "spec.queueingStrategy of the ClusterQueue, and Kueue's list of pending work"},
	{"NotTriedYet", "Kueue has not come to it: other work is ahead of it", "wait, or use a higher priority", "Kueue's list of pending work"},
	{"QuotaOwn", "the quota of its own queue is in use", "wait, use less, or ask an administrator for quota", "condition QuotaReserved of the Workload; usage of the ClusterQueue"},
	{"BorrowingLimit", "its queue has borrowed as much as it may", "wait, use less, or ask an administrator for a higher borrowingLimit", "condition QuotaReserved of the Workload; usage and borrowingLimit of the ClusterQueue"},
	{"QuotaCohort", "its queue uses all its quota, and the cohort has too little to borrow", "wait, use less, or ask an administrator for quota", "condition QuotaReserved of the Workload; usage of the ClusterQueue"},
	{"QuotaNotLent", "others in the cohort have unused quota that they do not lend", "ask an administrator whether the lendingLimit can be higher", "lendingLimit and usage of the ClusterQueues"},
	{"QuotaLent", "its queue has unused quota, but others in the cohort use it", "wait: Kueue takes it back, if the queue's preemption policy allows it", "condition QuotaReserved of the Workload; usage of the ClusterQueues"},
	{"Quota", quotareason.Sentence(quotareason.WaitingForQuota), "wait, or use less", "condition QuotaReserved of the Workload"},
	{"QuotaPreempting", quotareason.Sentence(quotareason.WaitingForPreempted), "wait", "condition QuotaReserved of the Workload"},
	{"NeverFits", quotareason.Sentence(quotareason.ExceedsMaxQuota), "request less, or ask an administrator for quota", "condition QuotaReserved of the Workload, or the quota of the ClusterQueue"},
	{"ResourceNotCovered", quotareason.Sentence(quotareason.ResourceNotCovered), "do not request the resource, or ask an administrator to add it to the ClusterQueue", "condition QuotaReserved of the Workload"},
	{"NoFlavor", quotareason.Sentence(quotareason.NoMatchingFlavor), "change nodeSelector, affinity or tolerations", "condition QuotaReserved of the Workload"},
	{"NoTopology", quotareason.Sentence(quotareason.TopologyFailed), "wait, or require less", "condition QuotaReserved of the Workload"},
	{"AboveLimitRange", quotareason.Sentence(quotareason.AboveLimitRange), "change the requests as the message says", "condition QuotaReserved of the Workload, conditions of the component, or events"},
	{"NamespaceNotAdmitted", "its ClusterQueue does not admit work of this namespace", "ask an administrator to change namespaceSelector of the ClusterQueue, or labels of the namespace", "condition QuotaReserved of the Workload"},
	{"WaitsForOthersPods", quotareason.Sentence(quotareason.WaitingForPodsReady), "wait", "condition QuotaReserved of the Workload"},
	{"NotAdmitted", "Kueue has not admitted it", "do what the message says", "condition QuotaReserved of the Workload"},
	{"AdmissionCheck", quotareason.Sentence(quotareason.AdmissionChecks), "ask an administrator about the admission check", "status.admissionChecks of the Workload"},
	{"AdmissionCheckRetry", "an admission check has failed, and is tried again", "wait, or ask an administrator about the admission check", "status.admissionChecks of the Workload"},
	{"AdmissionCheckRejected", "an admission check has rejected it for good", "do what the message says, and submit it again; or ask an administrator about the admission check", "status.admissionChecks, or condition Evicted of the Workload"},
	{"KindNotServed", "the cluster does not know a wrapped kind: its operator is missing", "ask an administrator to install the operator of the kind", "conditions of the component"},
	{"WebhookDown", "a webhook that has to judge a wrapped resource does not answer", "ask an administrator to look at the webhook", "conditions of the component"},
	{"PodSecurityRefused", "the Pod Security level of the namespace forbids a pod", "change the pod template as the message says", "conditions of the component, or events"},
	{"ResourceQuotaExceeded", "a ResourceQuota of the namespace is used up", "delete what you do not need, or ask an administrator for more; quota of Kueue is another one", "conditions of the component, or events"},
	{"ServiceAccountMissing", "a pod names a ServiceAccount that does not exist", "create it, or correct serviceAccountName", "conditions of the component, or events"},
	{"PriorityClassMissing", "a pod names a PriorityClass that does not exist", "correct priorityClassName: 'kubectl get priorityclasses' lists the classes", "conditions of the component, or events; or the PriorityClass was looked for"},
	{"NamespaceEnds", "its namespace is being deleted", "submit it in another namespace", "conditions of the component, or events"},
	{"NameTaken", "a resource that belongs to something else has the name of a wrapped resource", "delete that resource, or use another name", "conditions of the component"},
	{"StillBeingDeleted", "a resource of the same name is still being deleted", "wait; if it does not go, find out who owns its finalizers", "conditions of the component"},
	{"ControllerMayNot", "the controller lacks a right", "ask an administrator to give the controller the right that the message names", "conditions of the component, or condition DeletingResources of the AppWrapper"},
	{"ResourceInvalid", "a wrapped resource is not valid", "correct the field that the message names", "conditions of the component, or events"},
	{"PolicyRefused", "a policy refuses a wrapped resource or a pod", "change the resource as the message says", "conditions of the component, or events"},
	{"CreationRefused", "a wrapped resource could not be created", "change the resource as the message says", "conditions of the component"},
	{"OperatorWarns", "the operator of a wrapped resource warns", "do what the message says", "events"},
	{"PodNotScheduled", "it has quota, but no node takes a pod", "compare what the pod requests with what nodes have free; quota may be more than the nodes have", "condition PodScheduled of the pod"},
	{"NodesFull", "the nodes that a pod may use have too little free", "wait, or use less; ask an administrator what uses the nodes", "requests of the pods on all nodes"},
	{"NodesFragmented", "the nodes have enough free together, but in pieces that are too small", "wait, or use smaller pods; ask an administrator about fragmentation", "requests of the pods on all nodes"},
	{"NodesTooSmall", "a pod requests more than any node has that it may use", "use smaller pods", "status.allocatable of the nodes, or annotation largest-node of the ResourceFlavor"},
	{"QuotaBeyondNodes", "the quota of the flavor is more than its nodes have", "ask an administrator to lower the quota, or to add nodes", "quota of the ClusterQueues and Cohorts, and status of the nodes"},
	{"NoNodes", "the cluster has no nodes for pods", "ask an administrator", "condition PodScheduled of the pod"},
	{"NodesTainted", "no node takes a pod: each has a taint that the pod does not tolerate", "add tolerations, if the nodes are for your work", "condition PodScheduled of the pod"},
	{"NodesNotSelected", "no node takes a pod: none has the labels or the name that the pod selects", "correct nodeSelector or nodeAffinity", "condition PodScheduled of the pod"},
	{"NodesCordoned", "no node takes a pod: all are cordoned", "ask an administrator when the nodes are back", "condition PodScheduled of the pod"},
	{"PodAffinityUnmet", "no node takes a pod beside, or apart from, other pods as it requires", "correct podAffinity, podAntiAffinity or topologySpreadConstraints", "condition PodScheduled of the pod"},
	{"PortTaken", "no node takes a pod: the host port that it requests is taken on each", "request no hostPort", "condition PodScheduled of the pod"},
	{"NoNodeAllowed", "no node takes a pod: each is cordoned, tainted, or not what the pod selects or stands beside", "compare nodeSelector, affinity and tolerations with the nodes", "condition PodScheduled of the pod"},
	{"NodesAvoided", "it keeps away from nodes that failed it, while a pod finds no node", "wait, or set the annotation avoidNodes to false", "status.avoidedNodes of the AppWrapper, and condition PodScheduled of the pod"},
	{"WaitsForPreemption", "the scheduler has chosen a node for a pod, and waits for something there, such as the end of less important pods", "wait", "status.nominatedNodeName of the pod"},
	{"SchedulingGated", "something keeps a pod from being scheduled for now", "find out who removes the scheduling gate: Kueue removes its own", "condition PodScheduled of the pod, reason SchedulingGated"},
	{"SchedulerSilent", "no scheduler has looked at a pod for more than two minutes", "correct schedulerName, or ask an administrator whether the scheduler of this name is running", "spec.schedulerName and conditions of the pod"},
	{"TwoSchedulers", "its pods name different schedulers, which do not see what the other one plans", "use the same schedulerName for all pods", "spec.schedulerName of the pods"},
	{"GangNotScheduled", "it has quota, but the scheduler does not find room for all pods at once", "wait, or use fewer or smaller pods; ask an administrator about fragmentation", "condition PodScheduled of the pod"},
	{"GangIncomplete", "its gang has fewer pods than the PodGroup wants", "look whether all pods were created; correct minMember of the PodGroup", "condition PodScheduled of the pod"},
	{"PodGroupMissing", "the PodGroup that a pod names does not exist", "create it with the work, or correct the label scheduling.x-k8s.io/pod-group", "condition PodScheduled of the pod"},
	{"VolumeNotBound", "a volume of a pod does not bind or mount", "look at the PersistentVolumeClaim: does its StorageClass exist?", "condition PodScheduled of the pod, or events"},
	{"VolumeClaimMissing", "a PersistentVolumeClaim that a pod names does not exist", "create it, or correct its name", "condition PodScheduled of the pod"},
	{"VolumeElsewhere", "the volume of a pod can be used on other nodes only", "use a volume that these nodes can reach, or a storage class that waits for the first consumer", "condition PodScheduled of the pod"},
	{"VolumeInUse", "another pod uses a volume that only one pod may use", "wait for that pod, or use another volume", "condition PodScheduled of the pod"},
	{"ImageNotPulled", "the image of a container cannot be pulled", "correct the image's name, or add the secret of the registry to imagePullSecrets", "container status of the pod"},
	{"ImageMissing", "the image of a container does not exist", "correct name and tag of the image, or push it", "container status of the pod"},
	{"ImagePullDenied", "a registry does not let the node pull an image, or the image does not exist", "add a secret for the registry to imagePullSecrets; correct the name of the image", "container status of the pod"},
	{"RegistryUnreachable", "a node cannot reach the registry of an image", "correct the name of the registry, or ask an administrator about network, proxy and certificates of the nodes", "container status of the pod"},
	{"RegistryLimit", "a registry refuses more pulls for some time", "wait; use credentials of your own, or a mirror", "container status of the pod"},
	{"ImageNameInvalid", "the name of an image is not valid", "correct it", "container status of the pod"},
	{"ImageNeverPulled", "an image is not on the node, and may not be pulled", "change imagePullPolicy, which is Never", "container status of the pod"},
	{"WrongArchitecture", "an image, or its program, is for another processor than the node has", "build it for the architecture of the nodes, or select other nodes", "container status of the pod"},
	{"ImageComing", "a node still pulls an image, or creates a container", "wait: large images take minutes, and in an AppWrapper the annotation warmupGracePeriodDuration gives them more than 5; if it never comes, ask an administrator about the node", "condition PodReadyToStartContainers of the pod"},
	{"PodNotPrepared", "a node still prepares network and volumes of a pod", "wait; if it stays so, look at 'kubectl describe pod'", "condition PodReadyToStartContainers of the pod"},
	{"SandboxFailed", "a node could not set up the network of a pod", "ask an administrator about the network of the node", "events"},
	{"InitRuns", "an init container of a pod has not ended", "look at its log with kubectl logs -c; in an AppWrapper it may run for an hour, or for what the annotation initGracePeriodDuration says", "container status of the pod"},
	{"ConfigMissing", "a container waits for a Secret or a ConfigMap", "create it in the namespace, or correct its name", "container status of the pod, or events"},
	{"CrashLoop", "a container ends again and again", "look at its log with 'kubectl logs --previous'", "container status of the pod"},
	{"ContainerNotCreated", "a container cannot be created", "do what the message says", "container status of the pod"},
	{"CommandMissing", "a command was not found in an image or could not be executed, or a program ended as if so", "correct command and args, or the image", "container status of the pod"},
	{"InitFailed", "an init container ended with an error", "look at its log with kubectl logs -c", "container status of the pod"},
	{"ContainerRunsOn", "a container of a pod has ended well, and another runs on: the pod ends when all have", "write what only serves the others, such as a proxy, as an init container with restartPolicy: Always", "container status of the pod"},
	{"HookFailed", "the postStart hook of a container failed", "correct the hook", "events"},
	{"ProbeFailed", "a probe of a container failed", "look at its log; correct the probe, or give it more time", "events"},
	{"OutOfMemory", "a container used more memory than its limit", "request more memory, or use less", "container status of the pod, or lastFailure of the Run"},
	{"ProgramFailed", "a program ended with an error", "look at its log", "container status of the pod, or lastFailure of the Run"},
	{"ProgramKilled", "a program ended as one does that is killed from outside, with SIGKILL or SIGTERM", "look for a probe that failed, a node that was drained or short of memory, or somebody who deleted the pod", "container status of the pod, or lastFailure of the Run"},
	{"ProgramCrashed", "a program ended as one does that crashes, as with a segmentation fault", "look at its log; run it with a debugger, or with other versions of its libraries", "container status of the pod, or lastFailure of the Run"},
	{"PodEvicted", "a pod was evicted from its node", "look at the message: the node had too little of something, or was drained", "status of the pod"},
	{"NodePressure", "a node had too little memory, disk space or process numbers, and evicted a pod", "request what the program uses, so that it gets a node that has it", "status of the pod"},
	{"StorageLimit", "a pod used more disk space than its limit", "write less to the container and to emptyDir volumes, or raise the limit", "status of the pod"},
	{"PodDrained", "a pod was evicted through the API, as when somebody drains its node", "wait", "condition DisruptionTarget of the pod"},
	{"PodPreempted", "a more important pod took the place of a pod", "wait, or use a higher priority", "condition DisruptionTarget of the pod"},
	{"NodeTaintAppeared", "a pod had to leave a node because of a taint, as of nodes that are not ready", "wait", "condition DisruptionTarget of the pod"},
	{"NodeGone", "the node of a pod does not exist any more", "wait", "condition DisruptionTarget of the pod"},
	{"NodeShutdown", "a node was shut down under a pod", "wait", "status of the pod"},
	{"NodeNotReady", "the node of a pod was not ready", "wait: the work leaves the node after a while", "events"},
	{"NodeOverbooked", "a node refused a pod, because others had taken what the scheduler counted as free", "wait; if it happens again, ask an administrator whether two schedulers use the same nodes", "status.reason of the pod"},
	{"DevicesRefused", "a node refused a pod, because it could not give it the devices", "wait; if it happens again, ask an administrator about devices of the node", "status.reason of the pod, UnexpectedAdmissionError"},
	{"PodRejected", "a node refused to run a pod", "do what the message says", "status.reason of the pod"},
	{"DeadlineExceeded", "a pod ran for longer than activeDeadlineSeconds", "raise activeDeadlineSeconds, or do less", "status.reason of the pod"},
	{"BadNode", "its pods run on an unhealthy node, and it is moved", "wait", "condition Unhealthy of the AppWrapper, reason AutopilotNoExecute"},
	{"BadNodeStays", "its pods run on an unhealthy node, and stay there: it was moved as often as it may", "submit it again if it does not progress", "condition OnUnhealthyNodes of the AppWrapper"},
	{"NoProgress", "a pod was not ready for longer than its author chose, so the attempt ended", "look at what the pods did last; if that was work, let it report progress more often or announce a pause", "condition Unhealthy of the AppWrapper, reason NoProgress"},
	{"ComputesWithoutProgress", "a pod was not ready for longer than its author chose; the attempt goes on, because devices compute", "let the program report progress more often or announce a pause; delete the AppWrapper if it computes nothing useful", "condition ComputesWithoutProgress of the AppWrapper"},
	{"DevicesIdle", "its pods do not use their devices, says whoever watches them, and soon its quota goes back", "use them, or delete it; the annotation idleGracePeriodDuration gives it more time, and 0s all of it", "condition Idle of the AppWrapper"},
	{"SurplusPods", "it has more pods or devices than it declares, beyond its quota", "correct the pod sets", "condition SurplusPods of the AppWrapper"},
	{"PodNotReady", "a pod does not run yet, or is not ready, and nothing says why", "wait; if it stays so, look at its log with 'mlbatch logs', and at 'kubectl describe pod'", "condition Ready and phase of the pod, and its last warning"},
	{"EndNotSeen", "all its pods have ended, and it is not done: the operator of a wrapped resource has not seen the end", "look at the status and the events of the resource; ask an administrator whether its operator is running", "phase of the AppWrapper and of the pods"},
	{"NeverEnds", "a component runs until it is deleted, beside one that ends: the work does not succeed when the others have, and keeps its quota", "delete it when the others have ended, or use a kind that ends, such as a Job (for a Pod, restartPolicy Never)", "spec.components of the AppWrapper"},
	{"PodsNotReady", "not all its pods are ready", "look at its pods; it is started again if they take too long", "condition PodsReady of the AppWrapper"},
}

var entries = func() map[Code]Entry {
	all := map[Code]Entry{}
	for _, e := range Catalogue {
		all[e.Code] = e
	}
	return all
}()

// Means is a cause in one sentence.
func Means(code Code) string { return entries[code].Means }

// change sets what differs between two causes with the same code.
type change func(*Cause)

// cause is the only way to make one.
func cause(code Code, because Evidence, changes ...change) Cause {
	c := Cause{Code: code, Means: entries[code].Means, Remedy: entries[code].Remedy, Evidence: []Evidence{because}}
	for _, set := range changes {
		set(&c)
	}
	return c
}

func since(at metav1.Time) change {
	return func(c *Cause) {
		if !at.IsZero() {
			c.Since = &at
		}
	}
}

func next(what string, at *metav1.Time) change {
	return func(c *Cause) { c.Next = &Next{What: what, At: at} }
}

func also(more ...Evidence) change {
	return func(c *Cause) { c.Evidence = append(c.Evidence, more...) }
}
