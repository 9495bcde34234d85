// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// pending reports whether the work waits for quota.
func (o Objects) pending() bool {
	if o.Workload == nil {
		return false
	}
	conditions := o.Workload.Status.Conditions
	return !isTrue(conditions, kueue.WorkloadQuotaReserved) && !isTrue(conditions, kueue.WorkloadFinished)
}

// waits reports whether the work waits for Kueue, which may not have seen it yet.
func (o Objects) waits() bool {
	if o.Workload != nil {
		return o.pending()
	}
	if o.AppWrapper != nil {
		phase := o.AppWrapper.Status.Phase
		return o.AppWrapper.ManagedByThisController() && (phase == v1beta2.AppWrapperEmpty || phase == v1beta2.AppWrapperSuspended)
	}
	return o.Job != nil
}

func deactivated(o Objects) []Cause {
	if !o.pending() || !o.inactive() {
		return nil
	}
	if c := condition(o.Workload.Status.Conditions, kueue.WorkloadEvicted); c != nil && o.movesFromNodes() {
		return []Cause{cause("EvictedByNodes", told(o.workload(), *c), since(c.LastTransitionTime))}
	}
	return []Cause{o.deactivation()}
}

// deactivation is why the Workload was deactivated.
func (o Objects) deactivation() Cause {
	if c := condition(o.Workload.Status.Conditions, kueue.WorkloadEvicted); c != nil {
		if code := sorted(c.Reason, deactivations, ""); code != "" {
			return cause(code, told(o.workload(), *c), since(c.LastTransitionTime))
		}
	}
	return cause("Deactivated", Evidence{o.workload(), "spec.active", "false"})
}

// Abandoned is why nobody starts the work of a Workload again, if that is so: it was deactivated, and our controller
// has not asked for that.
func Abandoned(w *kueue.Workload) (Cause, bool) {
	o := Objects{Workload: w}
	if w == nil || !o.inactive() || o.movesFromNodes() || isTrue(w.Status.Conditions, kueue.WorkloadFinished) {
		return Cause{}, false
	}
	return o.deactivation(), true
}

// Sentence is the cause with what can be done.
func (c Cause) Sentence() string { return c.Means + ": " + c.Remedy }

// deactivations are why Kueue deactivates a Workload by itself.
var deactivations = []phrase{
	{"GivenBack", []string{kueue.WorkloadDeactivated + "DueToIdle"}},
	{"RequeuingLimit", []string{kueue.WorkloadRequeuingLimitExceeded}},
	{"MaxExecutionTime", []string{kueue.WorkloadMaximumExecutionTimeExceeded}},
	{"AdmissionCheckRejected", []string{kueue.WorkloadDeactivated + "DueTo" + kueue.WorkloadEvictedByAdmissionCheck}},
}

var preemptions = map[string]Code{
	kueue.InClusterQueueReason:                "PreemptedInQueue",
	kueue.InCohortReclamationReason:           "PreemptedReclaimed",
	kueue.InCohortFairSharingReason:           "PreemptedFairSharing",
	kueue.InCohortReclaimWhileBorrowingReason: "PreemptedWhileBorrowing",
}

var evictions = map[string]Code{
	kueue.WorkloadEvictedByPodsReadyTimeout:    "PodsReadyTimeout",
	kueue.WorkloadEvictedByClusterQueueStopped: "EvictedByStop",
	kueue.WorkloadEvictedByLocalQueueStopped:   "EvictedByStop",
	kueue.WorkloadEvictedByAdmissionCheck:      "EvictedByCheck",
	kueue.WorkloadEvictedDueToNodeFailures:     "EvictedByNodes",
}

// evicted is about work that had quota. Kueue sets the conditions to False when it has quota again.
func evicted(o Objects) []Cause {
	if o.Workload == nil || isTrue(o.Workload.Status.Conditions, kueue.WorkloadFinished) {
		return nil
	}
	conditions := o.Workload.Status.Conditions
	if c := condition(conditions, kueue.WorkloadPreempted); c != nil && c.Status == metav1.ConditionTrue {
		code, known := preemptions[c.Reason]
		if !known {
			code = "Preempted"
		}
		preempted := cause(code, told(o.workload(), *c), since(c.LastTransitionTime), by(c.Message))
		if o.pauses(c.LastTransitionTime) {
			return []Cause{o.pause(*c), preempted}
		}
		o.requeue()(&preempted)
		return []Cause{preempted}
	}
	return o.evictedOtherwise()
}

// mostHeld is how long work waits for what preempted it: docs/quota.md, controller/internal/preemptionpause.
const mostHeld = 7 * 24 * time.Hour

// pauses reports whether work waits because it was preempted again and again. Kueue itself sets no
// such time after a preemption.
func (o Objects) pauses(preempted metav1.Time) bool {
	state := o.Workload.Status.RequeueState
	return state != nil && state.RequeueAt != nil && state.RequeueAt.After(preempted.Time) && state.RequeueAt.After(o.Now)
}

func (o Objects) pause(preempted metav1.Condition) Cause {
	at := o.Workload.Status.RequeueState.RequeueAt
	seen := []Evidence{{o.workload(), "status.requeueState.requeueAt", at.UTC().Format(time.RFC3339)}}
	if n := o.preemptions(); n > 0 {
		seen = append(seen, Evidence{o.workload(), "count of preemptions in status.schedulingStats", fmt.Sprint(n)})
	}
	if at.Before(&metav1.Time{Time: preempted.LastTransitionTime.Add(mostHeld)}) {
		return cause("PausedAfterPreemptions", seen[0], also(seen[1:]...), next("Kueue queues it again", at))
	}
	return cause("HeldAfterPreemptions", seen[0], also(seen[1:]...), by(preempted.Message), next("Kueue queues it again when that work has ended, at the latest", at))
}

func (o Objects) preemptions() int32 {
	if o.Workload.Status.SchedulingStats != nil {
		for _, e := range o.Workload.Status.SchedulingStats.Evictions {
			if e.Reason == kueue.WorkloadEvictedByPreemption {
				return e.Count
			}
		}
	}
	return 0
}

func (o Objects) inactive() bool { return o.Workload.Spec.Active != nil && !*o.Workload.Spec.Active }

// movesFromNodes: our controller has asked Kueue for other nodes.
func (o Objects) movesFromNodes() bool {
	_, asks := o.Workload.Annotations[v1beta2.ReassignAnnotation]
	_, asked := o.Workload.Annotations[v1beta2.ReassignedAnnotation]
	return asks || asked && !o.inactive()
}

func (o Objects) evictedOtherwise() []Cause {
	c := condition(o.Workload.Status.Conditions, kueue.WorkloadEvicted)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason == kueue.WorkloadEvictedByPreemption || o.inactive() {
		return nil
	}
	code, known := evictions[c.Reason]
	if !known {
		code = "Evicted"
	}
	if c.Reason == kueue.WorkloadDeactivated && o.movesFromNodes() {
		code = "EvictedByNodes"
	}
	return []Cause{cause(code, told(o.workload(), *c), since(c.LastTransitionTime), o.requeue())}
}

// by names who preempted the work, as Kueue's message does.
func by(message string) change {
	_, rest, found := strings.Cut(message, "preemptor path: ")
	path, _, _ := strings.Cut(rest, ";")
	return func(c *Cause) {
		if found && path != "" {
			c.Who = append(c.Who, "work of "+path+" took the quota")
		}
	}
}

func (o Objects) requeue() change {
	state := o.Workload.Status.RequeueState
	if state == nil || state.RequeueAt == nil {
		return func(*Cause) {}
	}
	return next("Kueue queues it again", state.RequeueAt)
}

func queueMissing(o Objects) []Cause {
	if !o.waits() {
		return nil
	}
	if e, gone := o.missing("LocalQueue"); gone && o.LocalQueue == nil {
		return []Cause{cause("LocalQueueMissing", e)}
	}
	if e, gone := o.missing("ClusterQueue"); gone && o.queue() == nil {
		return []Cause{cause("ClusterQueueMissing", e)}
	}
	return nil
}

func queueStopped(o Objects) (all []Cause) {
	if !o.waits() {
		return nil
	}
	if q := o.LocalQueue; q != nil {
		all = append(all, stopped("LocalQueueStopped", "LocalQueue "+q.Name, q.Spec.StopPolicy)...)
		if len(all) == 0 && o.queue() == nil { // a member may read no more than this
			all = append(all, inactive("LocalQueue "+q.Name, q.Status.Conditions)...)
		}
	}
	if q := o.queue(); q != nil {
		found := stopped("ClusterQueueStopped", "ClusterQueue "+q.Name, q.Spec.StopPolicy)
		if len(found) == 0 {
			found = inactive("ClusterQueue "+q.Name, q.Status.Conditions)
		}
		all = append(all, found...)
	}
	return all
}

func stopped(code Code, object string, policy *kueue.StopPolicy) []Cause {
	if !quota.Stopped(policy) {
		return nil
	}
	return []Cause{cause(code, Evidence{object, "spec.stopPolicy", string(*policy)})}
}

// inactiveReasons are why Kueue says that a queue is not active.
var inactiveReasons = map[string]Code{
	"ClusterQueueDoesNotExist":                           "ClusterQueueMissing", // of a LocalQueue
	kueue.ClusterQueueActiveReasonTerminating:            "QueueTerminating",
	kueue.ClusterQueueActiveReasonFlavorNotFound:         "QueueLacksFlavor",
	kueue.ClusterQueueActiveReasonTopologyNotFound:       "QueueLacksTopology",
	kueue.ClusterQueueActiveReasonAdmissionCheckNotFound: "QueueLacksCheck",
	kueue.ClusterQueueActiveReasonAdmissionCheckInactive: "QueueCheckInactive",
}

func inactive(object string, conditions []metav1.Condition) []Cause {
	c := quota.Inactive(conditions)
	if c == nil {
		return nil
	}
	code, known := inactiveReasons[c.Reason]
	if !known {
		code = "QueueInactive"
	}
	return []Cause{cause(code, told(object, *c), since(c.LastTransitionTime))}
}

// unmanaged is about work that Kueue has not seen, or sees in no queue.
func unmanaged(o Objects) []Cause {
	if !o.waits() {
		return nil
	}
	if o.Workload != nil {
		return o.inNoQueue()
	}
	if e, gone := o.missing("API"); gone {
		return []Cause{cause("KueueMissing", e)}
	}
	e, gone := o.missing("Workload")
	if !gone {
		return nil
	}
	if o.Job != nil && o.Job.GetLabels()[v1beta2.QueueNameLabel] == "" {
		e.Value = "does not exist, and the label " + v1beta2.QueueNameLabel + " is not set"
		return []Cause{cause("NotQueued", e)}
	}
	created := metav1.Time{}
	if o.AppWrapper != nil {
		created = o.AppWrapper.CreationTimestamp
	}
	if class, gone := o.missing("WorkloadPriorityClass"); gone {
		return []Cause{cause("UnknownPriority", class, also(e), since(created))}
	}
	if class, gone := o.missing("PriorityClass"); gone { // Kueue needs to know its value
		return []Cause{cause("PriorityClassMissing", class, also(e), since(created))}
	}
	return []Cause{cause("NoWorkload", e, since(created))}
}

// inNoQueue: Kueue keeps a job from running that names no queue, and says that the queue without a name does not exist.
func (o Objects) inNoQueue() []Cause {
	c := condition(o.Workload.Status.Conditions, kueue.WorkloadQuotaReserved)
	if o.Workload.Spec.QueueName != "" || c == nil || c.Status != metav1.ConditionFalse || !hasAny(c.Message, "LocalQueue  doesn't exist") {
		return nil
	}
	return []Cause{cause("NotQueued", told(o.workload(), *c), since(o.Workload.CreationTimestamp))}
}

// waiting sorts what Kueue says about work that it has not given quota.
func waiting(o Objects) []Cause {
	if !o.pending() {
		return nil
	}
	c := condition(o.Workload.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil || c.Status != metav1.ConditionFalse {
		return o.neverFits()
	}
	found := cause(o.whyPending(*c), told(o.workload(), *c), since(o.Workload.CreationTimestamp), func(found *Cause) {
		found.Numbers = o.numbers(c.Message)
		found.Who = o.who(found.Numbers)
		if found.Code == "NeverFits" {
			found.Numbers = excesses(c.Message)
		}
	})
	switch found.Code {
	case "NeverFits":
		return []Cause{found}
	case "ResourceNotCovered": // to request less of it does not help
		return append([]Cause{found}, o.neverFits()...)
	}
	return slices.Concat(o.neverFits(), []Cause{found}, o.notLent(found))
}

var reasons = map[quotareason.Reason]Code{
	quotareason.ExceedsMaxQuota:     "NeverFits",
	quotareason.ResourceNotCovered:  "ResourceNotCovered",
	quotareason.NoMatchingFlavor:    "NoFlavor",
	quotareason.TopologyFailed:      "NoTopology",
	quotareason.AboveLimitRange:     "AboveLimitRange",
	quotareason.WaitingForPreempted: "QuotaPreempting",
	quotareason.WaitingForPodsReady: "WaitsForOthersPods",
}

// misconfigured are what Kueue says of queues, in a condition that may be older than what was read of them.
var misconfigured = []phrase{
	{"NamespaceNotAdmitted", []string{"workload namespace doesn't match ClusterQueue selector"}},
}

func (o Objects) whyPending(c metav1.Condition) Code {
	if code := sorted(c.Message, misconfigured, ""); code != "" {
		return code
	}
	reason := quotareason.Classify(c)
	if reason == quotareason.WaitingForQuota {
		return o.whoseQuota(c.Message)
	}
	if code, known := reasons[reason]; known {
		return code
	}
	return "NotAdmitted"
}

// whoseQuota tells what the first shortage is about, if the queue can be read.
func (o Objects) whoseQuota(message string) Code {
	queue, numbers := o.queue(), o.numbers(message)
	if queue == nil || len(numbers) == 0 {
		return "Quota"
	}
	cell := quota.Cell{Flavor: kueue.ResourceFlavorReference(numbers[0].Flavor), Resource: resourceName(numbers[0].Resource)}
	own, known := quota.Own(queue.Spec.ResourceGroups, cell)
	use, reported := quota.Reserved(*queue, cell)
	if !known || !reported {
		return "Quota"
	}
	if use.Total.Cmp(own.NominalQuota) < 0 && len(o.borrowers(cell)) > 0 && o.fitsIntoOwn(numbers[0], own, use) {
		return "QuotaLent"
	}
	return whose(*queue, own, use)
}

// fitsIntoOwn: the work needs no more than the queue has not used of its own, so that it only has to
// get that back. What is missing is at most what is requested.
func (o Objects) fitsIntoOwn(n Number, own kueue.ResourceQuota, use kueue.ResourceUsage) bool {
	needed, err := resource.ParseQuantity(n.Missing)
	if err != nil {
		return false
	}
	requested := resource.Quantity{}
	for _, r := range o.Workload.Status.ResourceRequests {
		requested.Add(r.Resources[resourceName(n.Resource)])
	}
	if requested.Cmp(needed) > 0 {
		needed = requested
	}
	needed.Add(use.Total)
	return needed.Cmp(own.NominalQuota) <= 0
}

func whose(queue kueue.ClusterQueue, own kueue.ResourceQuota, use kueue.ResourceUsage) Code {
	switch {
	case queue.Spec.CohortName == "":
		return "QuotaOwn"
	case own.BorrowingLimit != nil && own.BorrowingLimit.Cmp(use.Borrowed) <= 0:
		return "BorrowingLimit"
	case use.Total.Cmp(own.NominalQuota) >= 0:
		return "QuotaCohort"
	}
	return "Quota"
}

// neverFits compares what Kueue counted with what the queue can have.
func (o Objects) neverFits() (all []Cause) {
	queue := o.queue()
	requests := o.Workload.Status.ResourceRequests
	if queue == nil || len(requests) == 0 {
		return nil
	}
	var podSets []quota.PodSet
	for _, r := range requests {
		podSets = append(podSets, quota.PodSet{Count: 1, Requests: o.least(r)})
	}
	why := quota.Reasons(podSets, *queue, o.tree())
	if len(why) == 0 {
		return nil
	}
	computed := Evidence{o.workload() + " and ClusterQueue " + queue.Name, "status.resourceRequests, spec.resourceGroups", strings.Join(why, "; ")}
	return []Cause{cause("NeverFits", computed, since(o.Workload.CreationTimestamp))}
}

// checks is about admission checks that hold back work with quota.
func checks(o Objects) []Cause {
	if o.Workload == nil || o.pending() || isTrue(o.Workload.Status.Conditions, kueue.WorkloadAdmitted) || isTrue(o.Workload.Status.Conditions, kueue.WorkloadFinished) {
		return nil
	}
	for _, check := range o.Workload.Status.AdmissionChecks {
		if check.State == kueue.CheckStateReady || check.State == "" {
			continue
		}
		code := Code("AdmissionCheck")
		switch check.State {
		case kueue.CheckStateRejected:
			code = "AdmissionCheckRejected"
		case kueue.CheckStateRetry:
			code = "AdmissionCheckRetry"
		}
		evidence := Evidence{o.workload(), fmt.Sprintf("admission check %s is %s", check.Name, check.State), cmp.Or(check.Message, string(check.State))}
		return []Cause{cause(code, evidence, since(check.LastTransitionTime))}
	}
	return nil
}
