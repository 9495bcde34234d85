// SPDX-License-Identifier: Apache-2.0

package explain

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Catalogue has all causes. docs/why.md prints it.
var Catalogue = []Entry{
	{"BeingDeleted", "it was deleted, and its resources are being removed", "wait until they are gone", "metadata.deletionTimestamp"},
	{"DeletionStuck", "it was deleted, but finalizers keep a resource", "find out why the owner of the finalizers does not remove them: is its operator running?", "condition DeletingResources of the AppWrapper"},
	{"OtherController", "another controller manages it", "ask the administrator of that controller", "spec.managedBy of the AppWrapper"},
	{"RunRefused", "what the Run names is missing or does not fit together", "do what the message says, and submit the Run again if it has failed", "condition Accepted of the Run"},
	{"RunFailed", "the Run failed, and is not tried again", "look at the failure, and use 'mlbatch run retry'", "condition Failed of the Run"},
	{"Succeeded", "the work is done", "nothing has to be done", "phase of the AppWrapper, or condition Finished of the Workload"},
	{"SuccessKept", "its resources are kept for some time after the success", "delete it to free the names earlier", "annotation successTTLDuration of the AppWrapper"},
	{"RetryLimit", "it failed as often as it may", "correct the program, and submit it again; the annotation retryLimit allows more retries", "phase and resettingCount of the AppWrapper"},
	{"TerminalExitCode", "it ended with an exit code after which it is not tried again", "correct the program, and submit it again", "container status of the pod, and annotations terminalExitCodes and retryableExitCodes"},
	{"Failed", "it failed, and is not tried again", "do what the message says, and submit it again", "condition Unhealthy of the AppWrapper, or condition Finished of the Workload"},
	{"HeldForDebugging", "its resources and its quota are kept for you to look at", "delete it as soon as you have seen enough: the quota becomes free", "condition DeletingResources of the AppWrapper, reason DeletionPaused"},
	{"Retrying", "it failed, and is started again after a pause", "look at the logs of the failed pod; correct the program if it fails again", "phase and condition Unhealthy of the AppWrapper"},
	{"ComponentFailed", "a wrapped resource reports that it failed", "look at the status and the pods of that resource", "condition Unhealthy of the AppWrapper, reason FailedComponent"},
	{"ComponentMissing", "someone removed a wrapped resource", "submit it again, and delete the AppWrapper instead of its resources", "condition Unhealthy of the AppWrapper, reason MissingComponent"},
	{"Deactivated", "the Workload was deactivated", "set spec.active of the Workload to true, or submit it again", "spec.active of the Workload"},
	{"RequeuingLimit", "Kueue deactivated it: its pods were not ready in time too often", "find out why its pods do not become ready, and submit it again", "condition Evicted of the Workload"},
	{"PausedAfterPreemptions", "it was preempted again and again, and waits for some time before it is queued again", "wait; or submit it again as new work, which does not wait", "status.requeueState and status.schedulingStats of the Workload"},
	{"HeldAfterPreemptions", "it was preempted again and again, and waits until the work that preempted it last has ended", "wait; or submit it again as new work, which does not wait", "status.requeueState and status.schedulingStats of the Workload"},
	{"PreemptedInQueue", "more important work of the same queue took its quota", "wait, or use a higher priority", "condition Preempted of the Workload, reason InClusterQueue"},
	{"PreemptedReclaimed", "it ran on borrowed quota, which its owner has taken back", "wait, or ask an administrator for more quota of your own", "condition Preempted of the Workload, reason InCohortReclamation"},
	{"PreemptedFairSharing", "it lost its quota to a team that has less than its fair share", "wait until your team uses less", "condition Preempted of the Workload, reason InCohortFairSharing"},
	{"PreemptedWhileBorrowing", "more important work of another team, which borrows, took its quota", "wait, or use a higher priority", "condition Preempted of the Workload, reason InCohortReclaimWhileBorrowing"},
	{"Preempted", "other work took its quota", "wait: it is admitted again when there is quota", "condition Preempted of the Workload"},
	{"PodsReadyTimeout", "Kueue evicted it, because its pods were not ready in time", "find out why its pods do not become ready", "condition Evicted of the Workload, reason PodsReadyTimeout"},
	{"EvictedByStop", "an administrator stopped the queue, and it was evicted", "ask an administrator when the queue is started again", "condition Evicted of the Workload"},
	{"Evicted", "Kueue evicted it", "do what the message says", "condition Evicted of the Workload"},
	{"LocalQueueMissing", "its namespace has no queue of that name", "correct the label kueue.x-k8s.io/queue-name: 'kubectl get localqueues' lists the queues", "the LocalQueue was looked for"},
	{"ClusterQueueMissing", "the ClusterQueue of its queue does not exist", "ask an administrator to create it", "the ClusterQueue was looked for, or the status of the LocalQueue"},
	{"LocalQueueStopped", "its queue is stopped", "ask who administers the queue to set stopPolicy to None", "spec.stopPolicy of the LocalQueue"},
	{"ClusterQueueStopped", "the ClusterQueue of its queue is stopped", "ask an administrator to set stopPolicy to None", "spec.stopPolicy of the ClusterQueue"},
	{"QueueInactive", "its queue is not active", "ask an administrator to do what the message says", "condition Active of the LocalQueue or the ClusterQueue"},
	{"NoWorkload", "Kueue has not made a Workload for it", "if it stays so, ask an administrator whether Kueue runs and manages this kind and namespace", "the Workload was looked for"},
	{"NotQueued", "it has no queue, and Kueue ignores work without one", "set the label kueue.x-k8s.io/queue-name", "labels of the job"},
	{"QuotaOwn", "the quota of its own queue is in use", "wait, use less, or ask an administrator for quota", "condition QuotaReserved of the Workload; usage of the ClusterQueue"},
	{"QuotaCohort", "its queue uses all its quota, and the cohort has too little to borrow", "wait, use less, or ask an administrator for quota", "condition QuotaReserved of the Workload; usage of the ClusterQueue"},
	{"QuotaLent", "its queue has unused quota, but others in the cohort use it", "wait: Kueue takes it back, if the queue's preemption policy allows it", "condition QuotaReserved of the Workload; usage of the ClusterQueues"},
	{"Quota", "there is too little unused quota", "wait, or use less", "condition QuotaReserved of the Workload"},
	{"QuotaPreempting", "it gets quota as soon as the work that is being preempted has stopped", "wait", "condition QuotaReserved of the Workload"},
	{"NeverFits", "it requests more than its queue can ever have", "request less, or ask an administrator for quota", "condition QuotaReserved of the Workload, or the quota of the ClusterQueue"},
	{"ResourceNotCovered", "it requests a resource for which its queue has no quota", "do not request the resource, or ask an administrator to add it to the ClusterQueue", "condition QuotaReserved of the Workload"},
	{"NoFlavor", "no flavor of its queue has the nodes that it selects or tolerates", "change nodeSelector, affinity or tolerations", "condition QuotaReserved of the Workload"},
	{"NoTopology", "there is quota, but its pods do not fit into the topology as it requires", "wait, or require less", "condition QuotaReserved of the Workload"},
	{"AboveLimitRange", "a pod requests more, or less, than the LimitRange of its namespace allows", "change the requests as the message says", "condition QuotaReserved of the Workload"},
	{"WaitsForOthersPods", "Kueue first waits for the pods of other work", "wait", "condition QuotaReserved of the Workload"},
	{"NotAdmitted", "Kueue has not admitted it", "do what the message says", "condition QuotaReserved of the Workload"},
	{"AdmissionCheck", "it has quota, but an admission check is not ready", "ask an administrator about the admission check", "status.admissionChecks of the Workload"},
	{"KindNotServed", "the cluster does not know a wrapped kind: its operator is missing", "ask an administrator to install the operator of the kind", "conditions of the component"},
	{"WebhookDown", "a webhook that has to judge a wrapped resource does not answer", "ask an administrator to look at the webhook", "conditions of the component"},
	{"PolicyRefused", "a policy refuses a wrapped resource or a pod", "change the resource as the message says", "conditions of the component, or events"},
	{"CreationRefused", "a wrapped resource could not be created", "change the resource as the message says", "conditions of the component"},
	{"PodNotScheduled", "it has quota, but no node takes a pod", "compare what the pod requests with what nodes have free; quota may be more than the nodes have", "condition PodScheduled of the pod"},
	{"GangNotScheduled", "it has quota, but the scheduler does not find room for all pods at once", "wait, or use fewer or smaller pods; ask an administrator about fragmentation", "condition PodScheduled of the pod"},
	{"VolumeNotBound", "a volume of a pod does not bind or mount", "look at the PersistentVolumeClaim: does its StorageClass exist?", "condition PodScheduled of the pod, or events"},
	{"ImageNotPulled", "the image of a container cannot be pulled", "correct the image's name, or add the secret of the registry to imagePullSecrets", "container status of the pod"},
	{"ConfigMissing", "a container waits for a Secret or a ConfigMap", "create it in the namespace, or correct its name", "container status of the pod, or events"},
	{"CrashLoop", "a container ends again and again", "look at its log with 'kubectl logs --previous'", "container status of the pod"},
	{"OutOfMemory", "a container used more memory than its limit", "request more memory, or use less", "container status of the pod, or lastFailure of the Run"},
	{"ProgramFailed", "a program ended with an error", "look at its log", "container status of the pod, or lastFailure of the Run"},
	{"PodEvicted", "a pod was evicted from its node", "look at the message: the node had too little of something, or was drained", "status of the pod"},
	{"BadNode", "its pods run on an unhealthy node, and it is moved", "wait", "condition Unhealthy of the AppWrapper, reason AutopilotNoExecute"},
	{"BadNodeStays", "its pods run on an unhealthy node, and stay there: it was moved as often as it may", "submit it again if it does not progress", "condition OnUnhealthyNodes of the AppWrapper"},
	{"SurplusPods", "it has more pods or devices than it declares, beyond its quota", "correct the pod sets", "condition SurplusPods of the AppWrapper"},
	{"PodsNotReady", "not all its pods are ready", "look at its pods; it is started again if they take too long", "condition PodsReady of the AppWrapper"},
}

var entries = func() map[Code]Entry {
	all := map[Code]Entry{}
	for _, e := range Catalogue {
		all[e.Code] = e
	}
	return all
}()

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
