// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// kept returns the memory that the controller holds for the existing objects: how much the live
// heap grows when it starts.
func (c *cluster) kept(appWrappers int) float64 {
	c.Helper()
	c.stop()
	c.await("the end of the last controller", func() bool {
		runtime.GC()
		return c.last.Value() == nil
	})
	c.api.Requests()
	before, reconciled := alive(c), reconciles(c)
	c.start()
	c.await("a look at each", func() bool { return reconciles(c)-reconciled >= appWrappers })
	after := alive(c)
	runtime.KeepAlive(c)
	return float64(after) - float64(before)
}

// alive returns the size of the live heap once it is stable.
func alive(t testing.TB) uint64 {
	t.Helper()
	const noise = 2 << 10
	before := uint64(0)
	for range 1000 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // also collects pooled objects
		runtime.ReadMemStats(&m)
		if max(m.HeapAlloc, before)-min(m.HeapAlloc, before) < noise {
			return m.HeapAlloc
		}
		before = m.HeapAlloc
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the size of the heap does not become stable")
	return 0
}

// reconciles returns the number of reconciles in this process.
func reconciles(t testing.TB) int {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// heap returns how much memory the controller holds per running AppWrapper with its Job, and
// per pod. What it keeps of templates of few only, it keeps before it is measured.
func heap(t testing.TB, more int) (perAppWrapper, perPod float64) {
	t.Helper()
	const few, pods = saidKept, 5
	c := newCluster(t, 1)
	run := func(from, to int) {
		c.submit(from, to)
		c.start()
		for i := range to {
			c.await("pods that are ready", func() bool { return c.isTrue(nameOf(i), v1beta2.PodsReady) })
		}
	}
	run(0, few)
	least := c.kept(few)
	c.stop()
	run(few, few+more)
	less := c.kept(few + more)
	c.stop()
	for _, job := range c.api.All("jobs") {
		for i := 1; i < pods; i++ {
			c.addPod(job, i, `"phase":"Running"`, `"phase":"Succeeded"`) // more that run would be too many
		}
	}
	most := c.kept(few + more)
	perPod = (most - less) / float64((few+more)*(pods-1))
	return (less-least)/float64(more) - perPod, perPod
}

// BenchmarkHeap asserts nothing, because it also measures what else the process does.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		perAppWrapper, perPod := heap(b, 1000)
		b.ReportMetric(perAppWrapper, perOne)
		b.ReportMetric(perPod, perItsPod)
	}
}

const perOne, perItsPod = "B/AppWrapper", "B/pod"

// The budget of memory. docs/evidence/performance.md has what was measured.
var heapBudget = map[string]float64{perOne: 6 << 10, perItsPod: 2.5 * (1 << 10)}

// TestTheBudgetOfMemory measures in a process of its own, where nothing else is done.
func TestTheBudgetOfMemory(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, "-test.run=^$", "-test.bench=^BenchmarkHeap$", "-test.benchtime=1x").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for what, most := range heapBudget {
		found := regexp.MustCompile(`([\d.]+) ` + what).FindSubmatch(out)
		if found == nil {
			t.Fatalf("no %s in\n%s", what, out)
		}
		measured, err := strconv.ParseFloat(string(found[1]), 64)
		t.Logf("%.0f %s", measured, what)
		if err != nil || measured > most || measured < most/10 {
			t.Errorf("%s %s, want at most %.0f", found[1], what, most)
		}
	}
}
