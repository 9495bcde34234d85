// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// TestManyRunsAreCheap of controller/internal/run asserts the same without a cluster.
var runsNumber = flag.Int("runs", 0, "how many Runs are planned at once, on a cluster of their own (make test-long has 1,000)")

// TestManyRunsAtOnce lets Runs wait for their Application, be planned at once, run and succeed. It
// asserts what that costs in requests, and how fast it is beside the same AppWrappers without Runs,
// on the same cluster. It prints times and memory.
func TestManyRunsAtOnce(t *testing.T) {
	if *runsNumber == 0 {
		t.Skip("it takes ten minutes: say how many with -runs")
	}
	p := people[0]
	if _, err := p.up(t); err != nil {
		t.Fatalf("up failed: %v", err)
	}
	admin, _ := access(t, p)
	runsCost(t, p, admin, *runsNumber)
	load, _ := os.ReadFile("/proc/loadavg") // so that the reader knows whether the machine was busy
	t.Logf("load of the machine at the end %s", load)
	if _, err := p.says(t, "down"); err != nil {
		t.Fatal("down failed")
	}
}

// What the controller of Runs may cost.
const (
	statusWrites  = 6 // of a Run, at most
	runsMemory    = 40 << 20
	memoryOfARun  = 6 << 10
	leastRate     = 0.5 // of that of AppWrappers without Runs
	runsNamespace = "runs"
)

func runsCost(t *testing.T, p person, admin client.WithWatch, n int) {
	enableRuns(t, p, admin)
	c := newCrowd(t, admin, runsNamespace)
	sandbox.AllowRuns(t, admin, runsNamespace)
	sizes := runplan.DefaultSizes()
	sizes.Name = "default"
	sandbox.Create(t, admin, &sizes)
	bare := c.pace(n, func() { c.createBare(n) })
	c.clear()

	log := p.audit(t)
	log.of(sandbox.RunsAccount)
	runs := c.watchRuns()
	c.each(0, n, func(ctx context.Context, i int) error { return admin.Create(ctx, runOf(i)) })
	runs.await(v1alpha1.RunPending, n)
	began := time.Now()
	planned := c.pace(n, func() { sandbox.Create(t, admin, sandbox.Program(runsNamespace)) })
	runs.await(v1alpha1.RunRunning, n)
	t.Logf("%d Runs at once: %s, and all Runs say so after %.1f s; the same AppWrappers without Runs: %s", n, planned, time.Since(began).Seconds(), bare)
	compare(t, bare, planned)
	life := log.of(sandbox.RunsAccount)
	life = append(life, quietRuns(t, log)...)
	tellMemory(t, p, n, newScraper(t, p, admin, "codeflare"))
	c.end()
	runs.await(v1alpha1.RunSucceeded, n)
	wantFewRequests(t, append(life, log.of(sandbox.RunsAccount)...), n)
}

// enableRuns upgrades the platform with the controller of Runs, which has no right but to read.
func enableRuns(t *testing.T, p person, admin client.Client) {
	t.Helper()
	if err := v1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(p.dir(), "platform", "charts", "mlbatch-*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("the packaged charts are %q: %v", archives, err)
	}
	chart, err := loader.Load(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	upgrade := action.NewUpgrade(helm(t, p))
	upgrade.Namespace, upgrade.ResetThenReuseValues, upgrade.Wait, upgrade.Timeout = platform.Namespace, true, true, patience.For(patience.Limit)
	if _, err := upgrade.RunWithContext(t.Context(), "mlbatch", chart, sandbox.WithRuns()); err != nil {
		t.Fatal(err)
	}
	await(t, "the webhook of Runs answers", func(ctx context.Context) error {
		run := runOf(0)
		run.Namespace = "default"
		return admin.Create(ctx, run, client.DryRunAll)
	})
}

func runOf(i int) *v1alpha1.Run { return sandbox.RunOf(sandbox.Program(runsNamespace), nameOf(i)) }

// createBare creates the AppWrappers that the Runs would have.
func (c *crowd) createBare(n int) {
	c.Helper()
	c.each(0, n, func(ctx context.Context, i int) error {
		planned, problems := runplan.Plan(runplan.Input{
			Run: runOf(i), Application: sandbox.Program(runsNamespace), Sizes: []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}, Settings: runplan.DefaultSettings(),
		})
		if planned == nil {
			return fmt.Errorf("there is no plan: %v", problems)
		}
		return c.admin.Create(ctx, planned.AppWrapper)
	})
}

// pace is how long it takes until AppWrappers are there, and until they run.
type pace struct{ there, running time.Duration }

func (p pace) String() string {
	return fmt.Sprintf("all AppWrappers are there after %.1f s and Running after %.1f s", p.there.Seconds(), p.running.Seconds())
}

func (c *crowd) pace(n int, create func()) pace {
	c.Helper()
	began := time.Now()
	create()
	awaitFor(c.T, crowdLimit, "all AppWrappers are there", func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.last) != n {
			return fmt.Errorf("%d are", len(c.last))
		}
		return nil
	})
	there := time.Since(began)
	c.await(workload.AppWrapperRunning, n)
	return pace{there, time.Since(began)}
}

// compare asserts how fast Runs are planned and applied. A busy machine is as slow for both.
func compare(t *testing.T, bare, planned pace) {
	t.Helper()
	rate := bare.there.Seconds() / planned.there.Seconds()
	t.Logf("Runs are planned and applied at %.2f of the rate of AppWrappers without Runs, and their pods run at %.2f", rate, bare.running.Seconds()/planned.running.Seconds())
	if rate < leastRate {
		t.Errorf("Runs are planned and applied at %.2f of the rate of AppWrappers, and must be at %.2f", rate, leastRate)
	}
}

// end lets all pods succeed.
func (c *crowd) end() {
	c.Helper()
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.admin.List(c.Context(), pods, client.InNamespace(c.namespace)); err != nil {
		c.Fatal(err)
	}
	c.each(0, len(pods.Items), func(ctx context.Context, i int) error {
		return c.admin.Patch(ctx, &pods.Items[i], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"localcluster.mlbatch.dev/run-for":"1s"}}}`)))
	})
}

// runsSeen are the phases of Runs as a watch tells them.
type runsSeen struct {
	*testing.T
	mu     sync.Mutex
	phases map[string]v1alpha1.RunPhase
}

func (c *crowd) watchRuns() *runsSeen {
	c.Helper()
	s := &runsSeen{T: c.T, phases: map[string]v1alpha1.RunPhase{}}
	sandbox.Follow(c.T, c.admin, &v1alpha1.RunList{}, func(run *v1alpha1.Run, _ bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.phases[run.Name] = run.Status.Phase
	}, client.InNamespace(c.namespace))
	return s
}

func (s *runsSeen) await(phase v1alpha1.RunPhase, n int) {
	s.Helper()
	awaitFor(s.T, crowdLimit, fmt.Sprintf("%d Runs are %s", n, phase), func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		count := 0
		for _, is := range s.phases {
			if is == phase {
				count++
			}
		}
		if count != n {
			return fmt.Errorf("%d are", count)
		}
		return nil
	})
}

// quietRuns checks that Runs that run cause no requests, and returns those from before they were at
// rest, which are events.
func quietRuns(t *testing.T, log *audit) []asked {
	t.Helper()
	runs := func() []asked { return log.of(sandbox.RunsAccount) }
	before := awaitRest(t, "the controller of Runs", runs)
	select {
	case <-time.After(*quietTime):
	case <-t.Context().Done():
	}
	quiet := slices.DeleteFunc(runs(), allowed)
	for _, e := range quiet {
		t.Errorf("the controller of Runs sent a request: %s", e)
	}
	t.Logf("in %s in which nothing changes: %d requests", *quietTime, len(quiet))
	return before
}

// wantFewRequests compares all requests in the lives of Runs with what a Run may cost.
func wantFewRequests(t *testing.T, all []asked, n int) {
	t.Helper()
	saves, applies, others, conflicts := map[string]int{}, map[string]int{}, map[string]int{}, 0
	for _, e := range all {
		switch what := e.Verb + " " + e.ObjectRef.Resource; {
		case e.ObjectRef.Namespace != runsNamespace:
		case e.ResponseStatus.Code == http.StatusConflict: // the cache was late, and nothing was written
			conflicts++
		case e.ObjectRef.Resource == "runs" && e.ObjectRef.Subresource == "status":
			saves[e.ObjectRef.Name]++
		case what == "create appwrappers":
			applies[e.ObjectRef.Name]++
		default:
			others[what]++
		}
	}
	sum, most := 0, 0
	for i := range n {
		name := nameOf(i)
		sum, most = sum+saves[name], max(most, saves[name])
		if saves[name] > statusWrites || applies[name] != 1 {
			t.Errorf("Run %s cost %d status writes and %d requests for an AppWrapper", name, saves[name], applies[name])
		}
	}
	t.Logf("a Run that waited for its Application cost %.2f status writes, at most %d, and one AppWrapper; beside that all of them cost %v and %d writes that were refused because the cache was late",
		float64(sum)/float64(n), most, others, conflicts)
	for what, count := range others {
		// Each reads its Run again before it creates, and tells users that it was planned, has started and succeeded.
		if may := map[string]int{"get runs": n, "create events": 3 * n}[what]; count > may {
			t.Errorf("%d requests to %s, and there may be %d", count, what, may)
		}
	}
}

// tellMemory reads what the process of the controller takes.
func tellMemory(t *testing.T, p person, n int, metrics *scraper) {
	t.Helper()
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		command, _ := os.ReadFile(file)
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if !strings.HasPrefix(exe, p.dir()) || !bytes.HasPrefix(command, []byte("/runs\x00")) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		t.Logf("resident memory %d KiB while %d Runs run, of which %d are the program's file; %d at most; the limit that we want to keep is %d",
			kilobytes(status, "VmRSS:"), n, kilobytes(status, "RssFile:"), kilobytes(status, "VmHWM:"), (runsMemory+n*memoryOfARun)>>10)
		m := metrics.scrape()
		kib := func(name string) float64 { return m["go_memstats_"+name] / 1024 }
		t.Logf("KiB of the heap: %.0f in use, %.0f idle and not returned; garbage is collected at %.0f. Stacks have %.0f, the runtime %.0f",
			kib("heap_inuse_bytes"), kib("heap_idle_bytes")-kib("heap_released_bytes"), kib("next_gc_bytes"), kib("stack_inuse_bytes"),
			kib("mspan_sys_bytes")+kib("mcache_sys_bytes")+kib("gc_sys_bytes")+kib("other_sys_bytes")+kib("buck_hash_sys_bytes"))
		return
	}
	t.Error("no process is the controller of Runs")
}

func kilobytes(status []byte, field string) int {
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == field {
			number, _ := strconv.Atoi(fields[1])
			return number
		}
	}
	return 0
}
