// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"math/rand/v2"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// random makes clusters of a seed: it draws cohorts, quotas, limits, weights, flavors and jobs.
type random struct {
	*rand.Rand
	// flavors and cpus, in quarters of a CPU for each GPU, are the same in the whole cluster.
	flavors, cpus int
}

// Random is the cluster of a seed. Its jobs run without end.
func Random(seed uint64) Cluster {
	r := random{Rand: rand.New(rand.NewPCG(seed, 1))}
	r.flavors = pick(r, 1, 1, 2)
	r.cpus = pick(r, 16, 4, 3)
	return r.cluster()
}

func (r random) maybe(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r random, of ...T) T { return of[r.IntN(len(of))] }

func (r random) cluster() Cluster {
	c := Cluster{Apart: 10 * time.Minute}
	c.Cohorts = []queue.Cohort{{ObjectMeta: api.ObjectMeta{Name: "organization"}}}
	parents := []queue.CohortReference{"organization"}
	for i := range r.IntN(4) {
		name := fmt.Sprintf("department-%d", i)
		cohort := queue.Cohort{ObjectMeta: api.ObjectMeta{Name: name},
			Spec: queue.CohortSpec{ParentName: pick(r, parents...), FairSharing: r.weight()}}
		if r.maybe(30) {
			cohort.Spec.ResourceGroups = r.quota(r.IntN(3) * 8)
		}
		c.Cohorts = append(c.Cohorts, cohort)
		parents = append(parents, queue.CohortReference(name))
	}
	total := 0
	for i := range 2 + r.IntN(5) {
		gpus := pick(r, 0, 4, 8, 8, 16, 16, 32, 64)
		total += gpus
		q := r.queue(fmt.Sprintf("team-%d", i), pick(r, parents...), gpus)
		c.Queues = append(c.Queues, q)
	}
	teams := len(c.Queues)
	if r.maybe(40) {
		c.Queues = append(c.Queues, r.queue("slack", "organization", 8+8*r.IntN(3)))
		total += 16
	}
	for demand := 0; demand < 2*total+16 && len(c.Jobs) < 40; {
		job := Job{Name: fmt.Sprintf("job-%02d", len(c.Jobs)), Queue: c.Queues[r.IntN(teams)].Name,
			GPUs: pick[int64](r, 1, 1, 2, 2, 4, 4, 8, 8, 12, 16, 16, 32, 64), Priority: pick[int32](r, -5, 0, 0, 0, 5)}
		job.CPUs = pick(r, 1, job.GPUs/2, job.GPUs, job.GPUs)
		if r.maybe(10) {
			job.GPUs, job.CPUs = 0, job.GPUs
		}
		c.Jobs = append(c.Jobs, job)
		demand += int(max(job.GPUs, job.CPUs))
	}
	return c
}

func (r random) queue(name string, cohort queue.CohortReference, gpus int) queue.ClusterQueue {
	return queue.ClusterQueue{ObjectMeta: api.ObjectMeta{Name: name}, Spec: queue.ClusterQueueSpec{
		CohortName: cohort, NamespaceSelector: &api.LabelSelector{},
		ResourceGroups: r.quota(gpus), FairSharing: r.weight(), QueueingStrategy: queue.BestEffortFIFO,
	}}
}

func (r random) weight() *queue.FairSharing {
	if !r.maybe(30) {
		return nil
	}
	weight := resource.MustParse(pick(r, "0.5", "2", "3", "10", "0"))
	return &queue.FairSharing{Weight: &weight}
}

// quota has GPUs, and CPUs in proportion, in one flavor or in two.
func (r random) quota(gpus int) []queue.ResourceGroup {
	group := queue.ResourceGroup{CoveredResources: []core.ResourceName{CPU, GPU}}
	first := gpus
	if r.flavors == 2 {
		first = r.IntN(gpus/4+1) * 4
	}
	for i, gpus := range []int{first, gpus - first}[:r.flavors] {
		cpus := gpus * r.cpus / 4
		group.Flavors = append(group.Flavors, queue.FlavorQuotas{Name: Flavors[i],
			Resources: []queue.ResourceQuota{r.limited(CPU, cpus), r.limited(GPU, gpus)}})
	}
	return []queue.ResourceGroup{group}
}

func (r random) limited(name core.ResourceName, amount int) queue.ResourceQuota {
	q := queue.ResourceQuota{Name: name, NominalQuota: *resource.NewQuantity(int64(amount), resource.DecimalSI)}
	if r.maybe(20) {
		q.BorrowingLimit = resource.NewQuantity(int64(4*r.IntN(9)), resource.DecimalSI)
	}
	if amount > 0 && r.maybe(20) {
		q.LendingLimit = resource.NewQuantity(int64(r.IntN(amount+1)), resource.DecimalSI)
	}
	return q
}
