// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// shares are scenes in which the quota is not there.
var shares = map[explain.Code]scene{
	"QuotaOwn":       {set: func(p *place) { p.queue(); p.started("first", cpu("3")); p.submit("train", cpu("2")) }},
	"Quota":          {member: true, set: func(p *place) { p.queue(); p.started("first", cpu("3")); p.submit("train", cpu("2")) }},
	"BorrowingLimit": {set: func(p *place) { p.borrows("2", ""); p.submit("train", cpu("2")) }},
	"QuotaCohort":    {set: func(p *place) { p.borrows("", "2"); p.submit("train", cpu("2")) }},
	"QuotaNotLent":   {set: func(p *place) { p.borrows("", "2"); p.submit("train", cpu("2")) }},
	"QuotaLent": {set: func(p *place) {
		p.queue(inCohort(p))
		p.queueAt(p.namespace+"-others", "others", inCohort(p))
		p.started("first", cpu("3"), inQueue("others"))
		p.started("second", cpu("3"), inQueue("others"))
		p.submit("train", cpu("4"))
	}},
	"NeverFits":          {set: func(p *place) { p.queue(); p.submit("train", cpu("5")) }},
	"ResourceNotCovered": {set: func(p *place) { p.queue(); p.submit("train", requesting("example.com/thing", "1")) }},
	"NoFlavor": {set: func(p *place) {
		p.flavorOf("full", nil)
		p.queue(ofFlavor(p.namespace, "4"))
		p.submit("train", onlyIn("pieces"))
	}},
	"NoTopology": {set: func(p *place) {
		p.racks()
		p.submit("train", cpu("40"), pods(2), on("kueue.x-k8s.io/podset-required-topology", corev1.LabelHostname))
	}},
	"AboveLimitRange": {set: func(p *place) {
		p.limitRange()
		p.queue()
		p.submit("train", inPod(func(spec *corev1.PodSpec) {
			amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
		}))
	}},
}

func inCohort(p *place) func(*kueue.ClusterQueue) {
	return func(q *kueue.ClusterQueue) { q.Spec.CohortName = kueue.CohortReference(p.namespace) }
}

// change changes the one quota of a queue.
func change(edit func(*kueue.ResourceQuota)) func(*kueue.ClusterQueue) {
	return func(q *kueue.ClusterQueue) { edit(&q.Spec.ResourceGroups[0].Flavors[0].Resources[0]) }
}

// borrows: a queue has used its 4 CPUs, and 2 of another one. Limits are "" for none.
func (p *place) borrows(borrowing, lending string) {
	p.Helper()
	p.queue(inCohort(p), change(func(q *kueue.ResourceQuota) { q.BorrowingLimit = amount(borrowing) }))
	p.queueAt(p.namespace+"-others", "others", inCohort(p), change(func(q *kueue.ResourceQuota) { q.LendingLimit = amount(lending) }))
	p.started("first", cpu("3"))
	p.started("second", cpu("3"))
}

// racks makes a queue of nodes that are in a topology.
func (p *place) racks() {
	p.Helper()
	p.create(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: pool}, {NodeLabel: corev1.LabelHostname}}}})
	p.flavorOf("racks", new(kueue.TopologyReference(p.namespace)))
	p.queue(ofFlavor(p.namespace, "100"))
}

// preemptions are scenes in which work loses its quota to other work, or waits until that has gone.
var preemptions = map[explain.Code]scene{
	"QuotaPreempting": {set: func(p *place) {
		p.queue(preempting)
		p.runs("first", cpu("4"), unwilling)
		p.submit("train", cpu("4"), important)
	}},
	"PreemptedInQueue": {set: func(p *place) {
		p.queue(preempting)
		p.runs("train", cpu("4"))
		p.submit("second", cpu("4"), important)
	}},
	"PreemptedReclaimed": {set: func(p *place) {
		p.queue(inCohort(p))
		p.queueAt(p.namespace+"-owner", "owner", inCohort(p), preempting)
		p.runs("train", cpu("8"))
		p.submit("second", cpu("4"), inQueue("owner"))
	}},
	"PausedAfterPreemptions": {set: func(p *place) {
		p.queue(inCohort(p))
		p.queueAt(p.namespace+"-owner", "owner", inCohort(p), preempting)
		p.submit("train", cpu("8"))
		for i := range 3 { // as in docs/configuration.md
			p.untilReady("train")
			owner := fmt.Sprintf("owner-%d", i)
			p.submit(owner, cpu("4"), inQueue("owner"))
			p.untilReady(owner)
			p.remove(p.wrapper(owner))
		}
	}},
	"PreemptedFairSharing": {set: func(p *place) {
		nothing := change(func(q *kueue.ResourceQuota) { q.NominalQuota.Set(0) })
		p.queueAt(p.namespace+"-lender", "lender", inCohort(p))
		p.queue(inCohort(p), nothing)
		p.queueAt(p.namespace+"-other", "other", inCohort(p), nothing, preempting)
		p.runs("first", cpu("2"), important)
		p.runs("train", cpu("2"))
		p.submit("second", cpu("2"), inQueue("other"))
	}},
}

func preempting(q *kueue.ClusterQueue) {
	q.Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny}
}
