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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// TestManyRunsAreCheap of controller/internal/run asserts the same without a cluster.
var runsNumber = flag.Int("runs", 0, "how many Runs are planned at once, on a cluster of their own (make test-long has 1,000)")

// TestManyRunsAtOnce lets Runs wait for their Application, be planned at once, run and succeed. It
// asserts what that costs in requests, and prints how long it took beside the same AppWrappers
// without Runs, and the memory.
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
	runsAccount   = "codeflare-controller-manager"
	runsNamespace = "runs"
)

func runsCost(t *testing.T, p person, admin client.WithWatch, n int) {
	enableRuns(t, p, admin)
	c := newCrowd(t, admin, runsNamespace)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: runsNamespace, Name: "runs"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlbatch-runs"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: platform.Namespace, Name: runsAccount}},
	}
	sizes := runplan.DefaultSizes()
	sizes.Name = "default"
	for _, object := range []client.Object{binding, &sizes} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	bare := c.pace(n, func() { c.createBare(n) })
	c.clear()

	log := p.audit(t)
	log.of(runsAccount)
	runs := c.watchRuns()
	c.each(0, n, func(ctx context.Context, i int) error { return admin.Create(ctx, runOf(i)) })
	runs.await(v1alpha1.RunPending, n)
	began := time.Now()
	planned := c.pace(n, func() {
		if err := admin.Create(t.Context(), program()); err != nil {
			t.Fatal(err)
		}
	})
	runs.await(v1alpha1.RunRunning, n)
	t.Logf("%d Runs at once: %s; the same AppWrappers without Runs: %s", n, planned, bare)
	t.Logf("a Run is planned and applied at %.2f of their rate, and its pod runs at %.2f; all Runs say so after %s",
		bare.there.Seconds()/planned.there.Seconds(), bare.running.Seconds()/planned.running.Seconds(), time.Since(began).Round(time.Second))
	life := log.of(runsAccount)
	life = append(life, quietRuns(t, log)...)
	tellMemory(t, p, n)
	c.end()
	runs.await(v1alpha1.RunSucceeded, n)
	wantFewRequests(t, append(life, log.of(runsAccount)...), n)
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
	upgrade.Namespace, upgrade.ResetThenReuseValues, upgrade.Wait, upgrade.Timeout = platform.Namespace, true, true, waitLimit
	if _, err := upgrade.RunWithContext(t.Context(), "mlbatch", chart, map[string]any{"codeflare": map[string]any{"enabled": true}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the webhook of Runs answers", func(ctx context.Context) error {
		run := runOf(0)
		run.Namespace = "default"
		return admin.Create(ctx, run, client.DryRunAll)
	})
}

// program is the Application of all Runs. Its pods run until they are told to end.
func program() *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: runsNamespace, Name: "program"},
		Spec:       v1alpha1.ApplicationSpec{API: v1alpha1.APIShell, Image: "registry.example/work:1", Command: "work"},
	}
}

func runOf(i int) *v1alpha1.Run {
	return &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: runsNamespace, Name: nameOf(i)},
		Spec: v1alpha1.RunSpec{
			Application: v1alpha1.ApplicationReference{Name: "program"}, Size: "xs",
			Resources: map[corev1.ResourceName]v1alpha1.Amount{"cpu": v1alpha1.MustParseAmount("10m"), "memory": v1alpha1.MustParseAmount("10Mi")},
		},
	}
}

// createBare creates the AppWrappers that the Runs would have.
func (c *crowd) createBare(n int) {
	c.Helper()
	c.each(0, n, func(ctx context.Context, i int) error {
		planned, problems := runplan.Plan(runplan.Input{
			Run: runOf(i), Application: program(), Sizes: []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}, Settings: runplan.DefaultSettings(),
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
	awaitFor(c.T, longPatience, "all AppWrappers are there", func(context.Context) error {
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
	w, err := c.admin.Watch(c.Context(), &v1alpha1.RunList{}, client.InNamespace(c.namespace))
	if err != nil {
		c.Fatal(err)
	}
	s := &runsSeen{T: c.T, phases: map[string]v1alpha1.RunPhase{}}
	go func() {
		for event := range w.ResultChan() {
			if run, ok := event.Object.(*v1alpha1.Run); ok {
				s.mu.Lock()
				s.phases[run.Name] = run.Status.Phase
				s.mu.Unlock()
			}
		}
	}()
	return s
}

func (s *runsSeen) await(phase v1alpha1.RunPhase, n int) {
	s.Helper()
	awaitFor(s.T, longPatience, fmt.Sprintf("%d Runs are %s", n, phase), func(context.Context) error {
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
	var before []asked
	began := time.Now()
	await(t, "the controller of Runs is at rest", func(context.Context) error {
		for _, e := range log.of(runsAccount) {
			before = append(before, e)
			if !allowed(e) {
				began = time.Now()
			}
		}
		if at := time.Since(began); at < restful {
			return fmt.Errorf("it has been for %s", at)
		}
		return nil
	})
	select {
	case <-time.After(*quietTime):
	case <-t.Context().Done():
	}
	quiet := slices.DeleteFunc(log.of(runsAccount), allowed)
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
func tellMemory(t *testing.T, p person, n int) {
	t.Helper()
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		command, _ := os.ReadFile(file)
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if !strings.HasPrefix(exe, p.dir()) || !bytes.HasPrefix(command, []byte("/runs\x00")) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		now, peak := kilobytes(status, "VmRSS:"), kilobytes(status, "VmHWM:")
		t.Logf("resident memory %d KiB while %d Runs run, %d at most; the bar of issue 13 is %d", now, n, peak, (runsMemory+n*memoryOfARun)>>10)
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
