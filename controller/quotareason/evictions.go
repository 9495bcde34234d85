// SPDX-License-Identifier: Apache-2.0

package quotareason

import (
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Word is what Kueue says of the quota of work that had some, or will never get any.
type Word struct {
	// Known: there is a watch of Workloads, so what is empty is not so.
	Known bool
	// Evicted is why it takes the quota back, or has taken it.
	Evicted string
	// Deactivated is why nobody starts the work any more. If our controller has deactivated it to get other nodes, it
	// is empty.
	Deactivated string
}

// Reasons of evictions that are not Kueue's.
const (
	// Suspended: spec.suspend became true, and Kueue does not say why.
	Suspended = "Suspended"
	// NodesReassigned: our controller has asked for other nodes.
	NodesReassigned = "NodesReassigned"
	// Reactivated: it was deactivated, and is not any more.
	Reactivated = kueue.WorkloadReactivated
)

// Evictions are the reasons of the condition Requeued, with sentences. docs/api/appwrapper.md prints them.
var Evictions = []Entry{
	{Preempted, "other work took its quota"},
	{PodsReadyTimeout, "its pods were not ready in the time that Kueue gives them"},
	{kueue.WorkloadEvictedByAdmissionCheck, "an admission check took its quota back"},
	{kueue.WorkloadEvictedByClusterQueueStopped, "an administrator stopped its ClusterQueue"},
	{kueue.WorkloadEvictedByLocalQueueStopped, "an administrator stopped its LocalQueue"},
	{kueue.WorkloadEvictedDueToNodeFailures, "a node that Kueue has assigned has failed"},
	{NodesReassigned, "Kueue is asked for other nodes than those that have failed"},
	{Reactivated, "it was deactivated, and somebody has activated it again"},
	{Suspended, "spec.suspend became true, and Kueue does not say why: somebody may have set it"},
}

// Eviction is what the reason of an eviction means.
func Eviction(reason string) string {
	return sentence(Evictions, reason, "Kueue took its quota back: its Workload says more")
}

// Deactivations are the reasons of the condition Deactivated, with sentences.
var Deactivations = []Entry{
	{byHand, "a person or another program has set spec.active of its Workload to false: somebody has to set it to true"},
	{kueue.WorkloadMaximumExecutionTimeExceeded, "Kueue has deactivated it, because it has run for longer than its maximum execution time"},
	{kueue.WorkloadRequeuingLimitExceeded, "Kueue has deactivated it, because its pods were not ready in time too often"},
	{kueue.WorkloadEvictedByAdmissionCheck, "Kueue has deactivated it, because an admission check has rejected it"},
	{"Idle", "MLBatch has deactivated it, because its pods did not use their devices for longer than its idle grace"},
}

// byHand is the reason if no program says why.
const byHand = "DeactivatedByHand"

// Deactivation is who deactivated work and why, as a word and a sentence, for Kueue's reason.
func Deactivation(reason string) (word, means string) {
	word = strings.TrimPrefix(strings.TrimPrefix(reason, kueue.WorkloadDeactivated), "DueTo")
	if word == "" {
		word = byHand
	}
	return word, sentence(Deactivations, word, "Kueue has deactivated it: its Workload says more")
}

func sentence(all []Entry, reason, otherwise string) string {
	for _, e := range all {
		if string(e.Reason) == reason {
			return e.Sentence
		}
	}
	return otherwise
}
