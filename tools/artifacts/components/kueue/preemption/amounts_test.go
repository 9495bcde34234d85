// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Amounts that are too large to be added or multiplied get no quota, also as important work, and others keep theirs
// (docs/kueue.md, "What later releases mend", 15653).
func TestAmountsBeyondCountingGetNoQuota(t *testing.T) {
	for _, huge := range []Job{
		{GPUs: math.MaxInt64}, {CPUs: math.MaxInt64}, {CPUs: math.MaxInt64/1000 + 1}, {GPUs: 1, CPUs: math.MaxInt64 / 1000},
		{GPUs: 1 << 33, Pods: math.MaxInt32}, {GPUs: 1 << 34, Pods: 1 << 30}, {CPUs: 1 << 54, Pods: 1 << 10},
	} {
		t.Run(fmt.Sprintf("%d pods of %d GPUs, %d CPUs", max(1, huge.Pods), huge.GPUs, huge.CPUs), func(t *testing.T) {
			c := Cluster{Queues: []queue.ClusterQueue{row("red", 8), row("blue", 8)}, Jobs: jobs("red first 4 3 0"), Apart: time.Minute, Stopping: within(time.Minute)}
			for i := range 4 {
				huge.Name, huge.Queue, huge.Priority = fmt.Sprintf("huge-%d", i), "red", 10
				c.Jobs = append(c.Jobs, huge)
			}
			c.Jobs = append(c.Jobs, jobs("red second 4 3 0, blue third 8 6 0, blue fourth 1 0 0")...)
			o := Run(c, ours(t))
			if diff := cmp.Diff([]string{"first", "second", "third"}, o.Running); diff != "" || o.MostEver() > 0 {
				t.Errorf("other jobs run, or some were stopped (-want +got)\n%s%q", diff, o.Log)
			}
		})
	}
}
