// SPDX-License-Identifier: Apache-2.0

package views_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web/views"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

var begin = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func after(minutes int) metav1.Time {
	return metav1.NewTime(begin.Add(time.Duration(minutes) * time.Minute))
}

// drawn is a chart as text: a line for each bar.
func drawn(c *views.Chart) string {
	if c == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintln(&b, c.Title)
	for _, bar := range c.Bars {
		fmt.Fprintf(&b, "%s:", bar.Label)
		for _, s := range bar.Spans {
			fmt.Fprintf(&b, " [%d-%d %s: %s]", s.X, s.X+s.Width, s.Class, s.Text)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func same(t *testing.T, c *views.Chart, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(drawn(c))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestALifeHasWaitsAttemptsPreemptionsAndPods(t *testing.T) {
	created := after(0)
	r := work.Report{Item: work.Item{Kind: "AppWrapper", Name: "train", State: "Running", Stage: work.Running, Created: &created, Since: after(80)}}
	r.LastAttempts = []v1beta2.AppWrapperAttempt{
		{Began: after(10), Ended: after(30), Cause: "PodsFailed", Pod: "train-0", Reason: "OOMKilled"},
		{Began: after(40), Ended: after(60), Cause: "Evicted", Reason: "Preempted"},
	}
	pod := func(number int, node string, began, ended int) podlogs.Pod {
		p := podlogs.Pod{Name: fmt.Sprint("train-", number), Worker: number, Node: node, State: "Running"}
		start := after(began)
		p.Stored.Status.StartTime = &start
		if ended > 0 {
			p.State = "Failed: Error, exit code 1"
			p.Stored.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: after(ended)}}}}
		}
		return p
	}
	r.Pods = []podlogs.Pod{pod(0, "n1", 75, 0), pod(1, "n2", 80, 90), {Name: "launcher", Worker: -1, State: "Pending"}}
	same(t, views.Life(r, after(100).Time), `From 2026-11-22T10:00:00Z to 2026-11-22T11:40:00Z
AppWrapper train: [0-100 queued: waited for 10m] [100-300 failed: attempt until PodsFailed, OOMKilled for 20m] [300-400 queued: waited for 10m] [400-600 preempted: attempt until Evicted, Preempted for 20m] [600-800 queued: before it was Running for 20m] [800-1000 running: Running for 20m]
rank 0 on n1: [750-1000 running: Running for 25m]
rank 1 on n2: [800-900 failed: Failed: Error, exit code 1 for 10m]
launcher:`)

	r.Stage, r.State, r.Pods, r.Retries = work.Failed, "Failed", nil, 7
	r.LastAttempts, r.Since = r.LastAttempts[:1], after(30)
	same(t, views.Life(r, after(100).Time), `From 2026-11-22T10:00:00Z to 2026-11-22T10:30:00Z
AppWrapper train: [0-333 queued: waits and earlier attempts for 10m] [333-1000 failed: attempt until PodsFailed, OOMKilled for 20m]`)

	later := after(20)
	r.Created, r.Since = &later, after(40) // an attempt of before
	same(t, views.Life(r, after(100).Time), `From 2026-11-22T10:20:00Z to 2026-11-22T10:40:00Z
AppWrapper train: [0-500 failed: attempt until PodsFailed, OOMKilled for 20m] [500-1000 queued: before it was Failed for 10m]`)
	r.Created = nil
	same(t, views.Life(r, after(100).Time), "nothing")
	r.Created, r.Since = &created, after(-1) // clocks differ
	same(t, views.Life(r, after(100).Time), "nothing")
}

func TestQuotasHaveOneScale(t *testing.T) {
	cell := func(quota, used, borrowed, unused string) top.Cell {
		return top.Cell{Flavor: "a", Resource: "nvidia.com/gpu", Quota: resource.MustParse(quota), Used: resource.MustParse(used), Borrowed: resource.MustParse(borrowed), Unused: resource.MustParse(unused)}
	}
	same(t, views.Quota(top.Overview{
		Teams:   []top.Team{{Name: "red", Quota: []top.Cell{cell("10", "4", "0", "2")}}, {Name: "blue", Quota: []top.Cell{cell("10", "15", "5", "0"), cell("0", "0", "0", "0")}}},
		Cohorts: []top.Pool{{Cohort: "all", Cells: []top.Cell{cell("20", "19", "5", "1")}}},
	}), `Used, unused and borrowed of each quota
red, nvidia.com/gpu in a: [0-160 used: 4 used of 10] [160-240 free: 2 unused] [240-400 kept: the rest of 10]
blue, nvidia.com/gpu in a: [0-400 used: 15 used of 10] [400-600 beyond: 5 borrowed]
cohort all, nvidia.com/gpu in a: [0-560 used: 19 used of 20] [560-760 beyond: 5 lent] [760-800 free: 1 unused]`)
	same(t, views.Quota(top.Overview{}), "nothing")
}

func TestUsageIsDrawnByClass(t *testing.T) {
	hours := func(n int64) usage.Hours { return usage.Hours(n * 3600 * 1000) }
	gpus := func(team string, useful, lost int64) usage.Row {
		return usage.Row{Key: usage.Key{Team: team, Resource: "nvidia.com/gpu"}, Reserved: hours(useful + lost), Classes: map[ledger.Class]usage.Hours{ledger.Useful: hours(useful), ledger.LostToNode: hours(lost)}}
	}
	same(t, views.Usage(usage.Report{Rows: []usage.Row{gpus("blue", 6, 2), gpus("red", 4, 0)}}), `Hours reserved, and for what
blue, nvidia.com/gpu: [0-750 cUseful: Useful 6.00] [750-1000 cLostToNode: LostToNode 2.00]
red, nvidia.com/gpu: [0-500 cUseful: Useful 4.00]`)
	same(t, views.Usage(usage.Report{Rows: []usage.Row{{Key: usage.Key{Cause: ledger.Idle, Resource: "pods"}, Reserved: hours(3)}}}), `Hours reserved, and for what
Idle, pods: [0-1000 cIdle: 3.00 hours]`)
	many := usage.Report{}
	for i := range 60 {
		many.Rows = append(many.Rows, gpus(fmt.Sprint(i), 1, 0))
	}
	if c := views.Usage(many); len(c.Bars) != 50 || c.Left != 10 {
		t.Errorf("%d bars, and %d left", len(c.Bars), c.Left)
	}
}
