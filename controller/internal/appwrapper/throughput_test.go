// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// BenchmarkLifecycles measures how many AppWrappers per second the whole controller takes from
// creation to removal, with an API server that costs almost nothing.
func BenchmarkLifecycles(b *testing.B) {
	c := newCluster(b, 1)
	var gone atomic.Int64
	c.moved = func(name string, phase v1beta2.AppWrapperPhase, isGone bool) {
		switch {
		case isGone:
			gone.Add(1)
		case phase == v1beta2.AppWrapperRunning:
			c.complete(name)
		case phase == v1beta2.AppWrapperSucceeded:
			c.api.Delete("appwrappers", keyOf(name))
		}
	}
	c.start()
	c.api.Requests()
	began := processorTime(b)
	b.ResetTimer()
	c.submit(0, b.N)
	c.await("the end of all", func() bool { return gone.Load() == int64(b.N) })
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lifecycles/s")
	b.ReportMetric(float64(len(c.api.Requests()))/float64(b.N), "requests/lifecycle")
	b.ReportMetric((processorTime(b)-began).Seconds()*1000/float64(b.N), "cpu-ms/lifecycle")
}

// processorTime returns the CPU time of the whole process, including the API server in memory.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// complete lets a Job succeed.
func (c *cluster) complete(name string) {
	c.endPods(name)
	c.endJob(name)
}

func (c *cluster) endPods(name string) {
	job := c.api.Get("jobs", keyOf(name))
	for i := range c.pods {
		if err := c.api.Patch("pods", keyOf(podName(job, i)), `{"status":{"phase":"Succeeded"}}`); err != nil {
			c.Error(err)
		}
	}
}

func (c *cluster) endJob(name string) {
	if err := c.api.Patch("jobs", keyOf(name), `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`); err != nil {
		c.Error(err)
	}
}
