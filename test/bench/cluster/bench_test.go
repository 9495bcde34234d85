// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/auditlog"
	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

var (
	runs   = flag.Int("bench.runs", 0, "measure all scenarios so often; 0 compares those that have a budget with it, with fewer lives")
	report = flag.String("bench.report", "", "file for the results as JSON, of which only what is measured is replaced")
	fewer  = flag.Int("bench.fewer", 1, "play only one of so many lives, to try the scenarios")
	only   = flag.String("bench.only", "", "play only the scenario with this name, and write no report")
	commit = flag.String("bench.commit", "", "commit that is measured, for the report")
)

const (
	// nodes have room for 1,000 pods beside those that end: 110 each.
	nodes = 20
	// someLives of so many are enough to count requests.
	someLives = 5
)

// With -bench.runs this measures. Without, it compares counts and ratios with budgets.yaml.
func TestBench(t *testing.T) {
	scenarios, err1 := bench.Scenarios()
	budgets, err2 := bench.Budgets()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	rounds := *runs
	if rounds == 0 {
		rounds = 1
		scenarios = shorter(bench.Limited(scenarios, budgets), someLives)
	}
	scenarios = shorter(scenarios, *fewer)
	if *only != "" {
		scenarios = slices.DeleteFunc(scenarios, func(s bench.Scenario) bool { return s.Name != *only })
	}
	m := newMachine(t)
	r := bench.Report{Head: describe(t)}
	for round := range rounds {
		for _, s := range scenarios {
			result := m.run(s)
			t.Logf("round %d, %s: %.1f lives a second", round+1, s.Name, result.PerSecond)
			r.Results = append(r.Results, result)
		}
	}
	if *runs > 0 && *only == "" {
		r.Profile, r.Restart = m.profile(scenarios), m.restart()
	}
	for _, excess := range bench.Exceeded(r, scenarios, budgets) {
		t.Error(excess)
	}
	t.Logf("\n%s\n\n%s", r.Head, r.Tables(scenarios))
	if *runs > 0 && *only == "" && *report != "" {
		r.Reactions = kept(t).Reactions
		keep(t, *report, r)
	}
}

// shorter are the same scenarios with one of so many lives.
func shorter(all []bench.Scenario, of int) []bench.Scenario {
	for i := range all {
		all[i].Number = max(1, all[i].Number/of)
	}
	return all
}

// kept is the report that is there, in which nothing may be measured.
func kept(t *testing.T) (r bench.Report) {
	t.Helper()
	if _, err := bench.Read(*report, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func keep(t *testing.T, file string, measured any) {
	t.Helper()
	if err := bench.Write(file, measured); err != nil {
		t.Fatal(err)
	}
}

// describe says where and when something is measured.
func describe(t *testing.T) bench.Head {
	t.Helper()
	head, err := bench.Here(*commit)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// machine is the cluster on which scenarios run one after the other.
type machine struct {
	*testing.T
	admin     client.WithWatch
	api       rest.Interface // for what has no objects
	processes processes
	log       *auditlog.Log
	namespace int
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	admin, cluster := sandbox.Start(t, "bench", 26631, nodes, withJobs(t, sandbox.WithRuns()))
	sizes := runplan.DefaultSizes()
	sizes.Name = "default"
	sandbox.Create(t, admin, &sizes)
	createQueue(t, admin, kueue.ResourceFlavorSpec{})
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &machine{
		T: t, admin: admin, api: clients.CoreV1().RESTClient(), processes: processes{cluster: cluster.Dir()}, log: auditlog.Of(cluster.Dir()),
	}
}

// run plays a scenario in a namespace of its own, from the first creation until all is gone.
func (m *machine) run(s bench.Scenario) bench.Result {
	m.Helper()
	l := m.livesOf(s)
	m.requests()
	m.processes.forgetMemory(m.T)
	cpu := m.processes.seconds(m.T)
	l.prepare()
	begin := time.Now()
	l.play()
	rate := float64(s.Number) / time.Since(begin).Seconds()
	l.clear()
	result := bench.Result{
		Scenario: s.Name, Lives: s.Number, PerSecond: rate, Times: map[string]bench.Quantiles{},
		Requests: bench.Count(m.requests(), s.Number), CPU: map[string]float64{}, Memory: m.processes.mostMemory(m.T),
	}
	for step, times := range l.took {
		result.Times[step] = bench.QuantilesOf(times)
	}
	for process, seconds := range m.processes.seconds(m.T) {
		result.CPU[process] = 1000 * (seconds - cpu[process]) / float64(s.Number)
	}
	return result
}

// livesOf are those of a scenario, in a namespace of their own.
func (m *machine) livesOf(s bench.Scenario) *lives {
	m.Helper()
	m.namespace++
	namespace := fmt.Sprintf("bench-%d", m.namespace)
	m.create(namespace, s)
	l := &lives{T: m.T, Scenario: s, admin: m.admin, namespace: namespace, began: map[string]map[string]time.Time{}, took: map[string][]time.Duration{}}
	l.watch()
	return l
}

// create creates a namespace: of a team, with a queue, or of nobody. Runs may be in it, if there are any.
func (m *machine) create(namespace string, s bench.Scenario) {
	m.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if s.Queued {
		made.Labels = sandbox.Team
	}
	sandbox.Create(m.T, m.admin, made)
	if s.Queued {
		createLocalQueue(m.T, m.admin, namespace)
	}
	if s.Runs {
		sandbox.AllowRuns(m.T, m.admin, namespace)
		sandbox.Create(m.T, m.admin, sandbox.Program(namespace))
	}
}

func (m *machine) requests() []auditlog.Request {
	m.Helper()
	news, err := m.log.News()
	if err != nil {
		m.Fatal(err)
	}
	return news
}
