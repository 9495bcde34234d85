// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Position is where a Workload is in its queues, counted from 0. ClusterQueue is -1 if that is not known.
type Position struct {
	LocalQueue, ClusterQueue int32
}

// PositionAmong is that of a Workload that waits, among all Workloads of its namespace. That of its ClusterQueue is
// known if nothing waits there for another LocalQueue.
func PositionAmong(all []kueue.Workload, own *kueue.Workload, local *kueue.LocalQueue, queues []kueue.ClusterQueue) *Position {
	p := &Position{ClusterQueue: -1}
	for i := range all {
		w := Objects{Workload: &all[i]}
		if all[i].Spec.QueueName == own.Spec.QueueName && w.pending() && !w.inactive() && before(w.Workload, own) {
			p.LocalQueue++
		}
	}
	for _, q := range queues {
		if q.Name == string(local.Spec.ClusterQueue) && q.Status.PendingWorkloads == local.Status.PendingWorkloads {
			p.ClusterQueue = p.LocalQueue
		}
	}
	return p
}

// before: Kueue tries a before b. It orders by priority, and then by age.
func before(a, b *kueue.Workload) bool {
	return cmp.Or(
		cmp.Compare(priorityOf(b), priorityOf(a)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

func priorityOf(w *kueue.Workload) int32 {
	if w.Spec.Priority == nil {
		return 0
	}
	return *w.Spec.Priority
}

// ahead is how many are known to be ahead of it, and in which queue.
func (p *Position) ahead() (n int32, queue string) {
	if p.ClusterQueue < 0 {
		return p.LocalQueue, "LocalQueue"
	}
	return p.ClusterQueue, "ClusterQueue"
}

// FirstInQueue is said of the work that Kueue admits next.
const FirstInQueue = "it is the first in its ClusterQueue"

// words say who is ahead, of how many that wait in the ClusterQueue, if it was read.
func (p *Position) words(queue *kueue.ClusterQueue) string {
	switch {
	case p.ClusterQueue == 0:
		return FirstInQueue
	case p.ClusterQueue > 0:
		return fmt.Sprintf("%d are ahead of it in its ClusterQueue, %d of them in its own queue", p.ClusterQueue, p.LocalQueue)
	}
	text := "it is the first in its own queue"
	if p.LocalQueue > 0 {
		text = fmt.Sprintf("%d are ahead of it in its own queue", p.LocalQueue)
	}
	if queue != nil {
		text += fmt.Sprintf(", and %d wait in its ClusterQueue", queue.Status.PendingWorkloads)
	}
	return text
}
