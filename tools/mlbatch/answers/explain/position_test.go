// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// Without Kueue's visibility API, the Workloads of the namespace say who is ahead.
func TestThePositionFollowsFromWorkloads(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	workload := func(name string, priority int32, age time.Duration, changes ...func(*kueue.Workload)) kueue.Workload {
		w := kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: noon.Add(-age)}}}
		w.Spec = kueue.WorkloadSpec{QueueName: "default", Priority: &priority}
		for _, change := range changes {
			change(&w)
		}
		return w
	}
	condition := func(kind string) func(*kueue.Workload) {
		return func(w *kueue.Workload) {
			w.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
		}
	}
	own := workload("own", 5, time.Hour)
	for name, row := range map[string]struct {
		other   kueue.Workload
		waiting int32 // in the ClusterQueue; -1 if it may not be read
		want    explain.Position
	}{
		"an older one is ahead":                {workload("other", 5, 2*time.Hour), 2, explain.Position{LocalQueue: 1, ClusterQueue: 1}},
		"a younger one is not":                 {workload("other", 5, time.Minute), 2, explain.Position{}},
		"of the same second, the name decides": {workload("a", 5, time.Hour), 2, explain.Position{LocalQueue: 1, ClusterQueue: 1}},
		"one of a higher priority is ahead":    {workload("other", 6, time.Minute), 2, explain.Position{LocalQueue: 1, ClusterQueue: 1}},
		"one of a lower priority is not":       {workload("other", 4, 2*time.Hour), 2, explain.Position{}},
		"one that has quota waits no more":     {workload("other", 6, time.Hour, condition(kueue.WorkloadQuotaReserved)), 1, explain.Position{}},
		"nor does one that has ended":          {workload("other", 6, time.Hour, condition(kueue.WorkloadFinished)), 1, explain.Position{}},
		"nor one that is not active":           {workload("other", 6, time.Hour, func(w *kueue.Workload) { w.Spec.Active = new(false) }), 1, explain.Position{}},
		"one of another queue is elsewhere":    {workload("other", 6, time.Hour, func(w *kueue.Workload) { w.Spec.QueueName = "slack" }), 1, explain.Position{}},
		"others share the ClusterQueue":        {workload("other", 6, time.Hour), 9, explain.Position{LocalQueue: 1, ClusterQueue: -1}},
		"a ClusterQueue that may not be read":  {workload("other", 6, time.Hour), -1, explain.Position{LocalQueue: 1, ClusterQueue: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			var local kueue.LocalQueue
			if local.Status.PendingWorkloads = 2; row.waiting == 1 {
				local.Status.PendingWorkloads = 1
			}
			var queues []kueue.ClusterQueue
			if local.Spec.ClusterQueue = "team"; row.waiting >= 0 {
				queues = []kueue.ClusterQueue{{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: kueue.ClusterQueueStatus{PendingWorkloads: row.waiting}}}
			}
			all := []kueue.Workload{own, row.other}
			for range all {
				slices.Reverse(all)
				if got := explain.PositionAmong(all, &own, &local, queues); *got != row.want {
					t.Errorf("got %+v, want %+v", *got, row.want)
				}
			}
		})
	}
}
