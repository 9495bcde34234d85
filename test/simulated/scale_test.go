// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// By default nothing is measured. make test-long measures; the results are not asserted.
var measured = flag.String("measure.running", "", "measure, and at last with these numbers of running AppWrappers: 1000,5000")

const (
	lifecycles = 500 // created, run, succeeded and deleted
	wave       = 300 // unsuspended at once
	failures   = 100 // failed pods of these
)

// figure is a row of the table: what was measured, the value for upstream's v1.2.2 on two
// similar cores, and our goal.
type figure struct{ what, measured, upstream, aim string }

// measure prints the load that our controller causes, and how fast it is.
func measure(t *testing.T, p person, admin client.WithWatch, metrics *scraper) {
	if *measured == "" {
		return
	}
	tell := func(figures ...figure) {
		for _, f := range figures {
			t.Logf("%-58s %22s %22s %22s", f.what, f.measured, f.upstream, f.aim)
		}
	}
	tell(figure{"", "measured", "v1.2.2", "aim"})
	tell(newCrowd(t, admin, "lives").measureLives(p, metrics)...)
	tell(newCrowd(t, admin, "wave").measureReactions()...)
	many := newCrowd(t, admin, "many")
	for number := range strings.SplitSeq(*measured, ",") {
		tell(many.measureMemory(metrics, number))
	}
	load, _ := os.ReadFile("/proc/loadavg") // so that the reader knows whether the machine was busy
	t.Logf("load of the machine at the end %s", load)
}

// measureLives lets many AppWrappers be created, run for a second, succeed and be deleted.
func (c *crowd) measureLives(p person, metrics *scraper) []figure {
	c.Helper()
	log := p.audit(c.T)
	log.ours()
	before, begin := metrics.scrape(), time.Now()
	c.create(0, lifecycles, false, "1s")
	c.await(workload.AppWrapperSucceeded, lifecycles)
	succeeded, rate := metrics.scrape(), lifecycles/time.Since(begin).Seconds()
	asked := log.ours()
	c.clear()
	gone := metrics.scrape()
	writes := written(asked)
	cpu := func(after map[string]float64) string {
		return fmt.Sprintf("%.1f ms", 1000*(after[processor]-before[processor])/lifecycles)
	}
	return []figure{
		{"lifecycles a second, from creation to Succeeded", fmt.Sprintf("%.1f", rate), "7.6", "75"},
		{"requests of a lifecycle", fmt.Sprintf("%.1f", float64(len(asked))/lifecycles), "14", ""},
		{"requests of a lifecycle, until it is gone", fmt.Sprintf("%.1f", float64(len(asked)+len(log.ours()))/lifecycles), "", ""},
		{"writes of a lifecycle: status, finalizer, create", writes, "", "5, 1, 1"},
		{"processor time of a lifecycle", cpu(succeeded), "24 ms", "6 ms"},
		{"processor time of a lifecycle, until it is gone", cpu(gone), "", ""},
	}
}

// written returns the average number of writes per lifecycle.
func written(requests []asked) string {
	status, finalizer, create := 0, 0, 0
	for _, e := range requests {
		switch {
		case e.Verb == "patch" && e.ObjectRef.Subresource == "status":
			status++
		case e.Verb == "patch" && e.ObjectRef.Resource == "appwrappers":
			finalizer++
		case e.Verb == "create" && e.ObjectRef.Resource == "jobs":
			create++
		}
	}
	return fmt.Sprintf("%.2f, %.2f, %.2f", float64(status)/lifecycles, float64(finalizer)/lifecycles, float64(create)/lifecycles)
}

// measureReactions unsuspends many AppWrappers at once, and then lets some of their pods fail.
func (c *crowd) measureReactions() []figure {
	c.Helper()
	c.create(0, wave, true, forever)
	c.await(workload.AppWrapperSuspended, wave)
	starts := c.times(wave, func(_, after *workload.AppWrapper) bool { return after.Status.Phase == workload.AppWrapperRunning }, func(t *times) {
		c.each(0, wave, func(ctx context.Context, i int) error {
			t.begin(nameOf(i))
			return c.admin.Patch(ctx, c.named(i), client.RawPatch(types.MergePatchType, []byte(`{"spec": {"suspend": false}}`)))
		})
	})
	pods := &corev1.PodList{}
	if err := c.admin.List(c.Context(), pods, client.InNamespace(c.namespace)); err != nil {
		c.Fatal(err)
	}
	notices := c.times(failures, func(before, after *workload.AppWrapper) bool {
		return !apiequality.Semantic.DeepEqual(before.Status, after.Status)
	}, func(t *times) {
		c.each(0, failures, func(ctx context.Context, i int) error {
			t.begin(pods.Items[i].Labels[workload.AppWrapperLabel])
			return c.admin.Status().Patch(ctx, &pods.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Failed"}}`)))
		})
	})
	c.clear()
	return []figure{
		{fmt.Sprintf("%d unsuspended at once: Running after, p50 and p99", wave), starts, "10.6 s, 15.8 s", "p99 2 s"},
		{fmt.Sprintf("one of %d failed pods: seen after, p50 and p99", failures), notices, "p50 27 s", "1 s"},
	}
}

func (c *crowd) named(i int) *workload.AppWrapper {
	aw := &workload.AppWrapper{}
	aw.Namespace, aw.Name = c.namespace, nameOf(i)
	return aw
}

// measureMemory adds running AppWrappers until there are so many.
func (c *crowd) measureMemory(metrics *scraper, number string) figure {
	c.Helper()
	to, err := strconv.Atoi(number)
	if err != nil {
		c.Fatal(err)
	}
	c.mu.Lock()
	from := len(c.last)
	c.mu.Unlock()
	c.create(from, to, false, forever)
	c.await(workload.AppWrapperRunning, to)
	of := map[int]figure{1000: {upstream: "110 MiB", aim: "60 MiB"}, 5000: {upstream: "359 MiB", aim: "120 MiB"}}[to]
	memory := metrics.scrape()[resident]
	return figure{fmt.Sprintf("resident memory while %d run", to), fmt.Sprintf("%.0f MiB", memory/(1<<20)), of.upstream, of.aim}
}

// times measures the time from an action until its effect is seen.
type times struct {
	mu    sync.Mutex
	began map[string]time.Time
	took  []time.Duration
}

func (t *times) begin(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began[name] = time.Now()
}

func (t *times) end(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if began, ok := t.began[name]; ok {
		t.took = append(t.took, time.Since(began))
		delete(t.began, name)
	}
}

// times calls do and returns how long it took until n effects were seen.
func (c *crowd) times(n int, wanted func(before, after *workload.AppWrapper) bool, do func(*times)) string {
	c.Helper()
	t := &times{began: map[string]time.Time{}}
	c.mu.Lock()
	c.seen = func(before, after *workload.AppWrapper) {
		if wanted(before, after) {
			t.end(after.Name)
		}
	}
	c.mu.Unlock()
	do(t)
	awaitFor(c.T, crowdLimit, "all are seen", func(context.Context) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.took) < n {
			return fmt.Errorf("%d of %d", len(t.took), n)
		}
		return nil
	})
	slices.Sort(t.took)
	at := func(percent int) time.Duration { return t.took[(len(t.took)-1)*percent/100].Round(time.Millisecond) }
	return fmt.Sprintf("%s, %s", at(50), at(99))
}
