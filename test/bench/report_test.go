// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/auditlog"
	"github.com/mlbatch/mlbatch/test/bench"
)

func scenarios(t *testing.T) ([]bench.Scenario, map[string]bench.Budget) {
	t.Helper()
	all, err1 := bench.Scenarios()
	budgets, err2 := bench.Budgets()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return all, budgets
}

func TestEveryBudgetIsOfAScenario(t *testing.T) {
	all, budgets := scenarios(t)
	for name := range budgets {
		known := false
		for _, s := range all {
			known = known || s.Name == name
		}
		if !known {
			t.Errorf("budgets.yaml has %s, which is no scenario", name)
		}
	}
	if len(budgets) == 0 {
		t.Error("there is no budget")
	}
}

// of makes a report in which a life costs what the budget allows, and something more.
func of(all []bench.Scenario, budgets map[string]bench.Budget, more float64, rate float64) bench.Report {
	r := bench.Report{}
	for _, s := range all {
		result := bench.Result{Scenario: s.Name, PerSecond: 20, Requests: map[string]map[string]float64{}}
		if !s.Bare {
			result.PerSecond = 20 * rate
		}
		for who, most := range budgets[s.Name].Requests {
			result.Requests[who] = map[string]float64{}
			for what, n := range most {
				if what != "all" {
					result.Requests[who][what] = n
				}
			}
			result.Requests[who]["get jobs"] = most["all"] - result.Asked(who, "") + more
		}
		r.Results = append(r.Results, result)
	}
	return r
}

// slowRuns lets Runs be slower than AppWrappers.
func slowRuns(r bench.Report, all []bench.Scenario) bench.Report {
	for i, s := range all {
		if s.Runs {
			r.Results[i].PerSecond *= 0.4
		}
	}
	return r
}

func TestWhatBudgetsCompareWithIsMeasured(t *testing.T) {
	all, budgets := scenarios(t)
	limited := bench.Limited(all, budgets)
	r := of(limited, budgets, 0, 1)
	for _, s := range limited {
		if _, ok := r.Ratio(s, limited); budgets[s.Name].OfBareJobs > 0 && !ok {
			t.Errorf("%s is not compared with bare Jobs", s.Name)
		}
		if _, ok := r.OfAppWrappers(s, limited); budgets[s.Name].OfAppWrappers > 0 && !ok {
			t.Errorf("%s is not compared with AppWrappers", s.Name)
		}
	}
	if len(limited) == len(all) {
		t.Error("everything is measured")
	}
}

func TestBudgets(t *testing.T) {
	all, budgets := scenarios(t)
	if excess := bench.Exceeded(of(all, budgets, 0, 1), all, budgets); len(excess) > 0 {
		t.Errorf("exactly the budget is too much: %q", excess)
	}
	if excess := bench.Exceeded(bench.Report{}, all, budgets); len(excess) > 0 {
		t.Errorf("nothing was measured: %q", excess)
	}
	for why, test := range map[string]struct {
		report bench.Report
		want   string
	}{
		"a request more":        {of(all, budgets, 1, 1), "2-burst: appwrapper-controller-manager sent 11.50 requests of a life (all), and may send 10.50"},
		"slower than bare Jobs": {of(all, budgets, 0, 0.1), "2-burst: the rate is 0.10 of that of bare Jobs, and must be at least 0.38"},
		"Runs that are slow":    {slowRuns(of(all, budgets, 0, 1), all), "8-runs: the rate is 0.40 of that of AppWrappers, and must be at least 0.50"},
	} {
		if excess := bench.Exceeded(test.report, all, budgets); len(excess) == 0 || excess[0] != test.want {
			t.Errorf("%s: got %q, want first %q", why, excess, test.want)
		}
	}
}

func TestRequestsAreCountedOfALife(t *testing.T) {
	request := func(who, verb string) auditlog.Request {
		r := auditlog.Request{Verb: verb}
		r.User.Username, r.ObjectRef.Resource, r.ObjectRef.Subresource = who, "appwrappers", "status"
		return r
	}
	got := bench.Count([]auditlog.Request{
		request("system:serviceaccount:mlbatch-system:ours", "patch"), request("system:serviceaccount:mlbatch-system:ours", "patch"),
		request("system:serviceaccount:mlbatch-system:ours", "watch"), request("admin", "get"),
	}, 2)
	want := map[string]map[string]float64{"ours": {"patch appwrappers/status": 1}, "admin": {"get appwrappers/status": 0.5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A budget of one is not exceeded by one in each of many lives.
func TestManyLivesOfOneRequestEachAreExactlyOne(t *testing.T) {
	for lives := 1; lives <= 1000; lives++ {
		if got := bench.Count(make([]auditlog.Request, lives), lives); got[""][" "] != 1 {
			t.Fatalf("of %d lives it is %v", lives, got)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var times []time.Duration
	for i := 100; i > 0; i-- {
		times = append(times, time.Duration(i)*time.Millisecond)
	}
	if got := bench.QuantilesOf(times); got != (bench.Quantiles{P50: 50, P99: 99}) {
		t.Errorf("got %v", got)
	}
	if got := bench.QuantilesOf([]time.Duration{2 * time.Second, time.Second}); got != (bench.Quantiles{P50: 1000, P99: 2000}) {
		t.Errorf("of two: %v", got)
	}
	if got := bench.QuantilesOf(nil); got != (bench.Quantiles{}) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestTheReportHasTheMiddleOfAllRuns(t *testing.T) {
	all := []bench.Scenario{
		{Name: "bare", Says: "bare Jobs", Bare: true, Number: 3}, {Name: "ours", Says: "AppWrappers", Number: 3}, {Name: "runs", Says: "Runs", Runs: true, Number: 3},
	}
	r := bench.Report{Head: bench.Head{Date: "2026-11-23", Commit: "abc", Machine: "2 cores", Versions: "Kubernetes 1"}}
	for i := range 3 {
		rate := float64(8 + i)
		r.Results = append(r.Results,
			bench.Result{Scenario: "bare", PerSecond: 20, CPU: map[string]float64{"etcd": 1, "idle": 0}},
			bench.Result{
				Scenario: "ours", PerSecond: rate, Times: map[string]bench.Quantiles{bench.ToRunning: {P50: 1000, P99: 2000}},
				Requests: map[string]map[string]float64{bench.Ours: {"get jobs": 1, "create jobs": 2}},
			},
			bench.Result{Scenario: "runs", PerSecond: rate * 2 / 3, CPU: map[string]float64{"etcd": 2}})
	}
	out := r.String() + "\n" + r.Tables(all)
	for _, want := range []string{
		"Measured on 2026-11-23 at commit `abc`: 2 cores, Kubernetes 1.",
		"| AppWrappers | 3 | 9.00 (8.00–10.0) | 45 % |  | 1000 | 2000 | 0 | 0 |",
		"| Runs | 3 | 6.00 (5.33–6.67) | 30 % | 67 % | 0 | 0 | 0 | 0 |",
		"| requests of a life | ours |\n|---|---|\n| appwrapper-controller-manager | 3.00 |",
		"| requests of a life by appwrapper-controller-manager | ours |\n|---|---|\n| create jobs | 2.00 |",
		"| processor time of a life, in ms | bare | runs |\n|---|---|---|\n| etcd | 1.00 | 2.00 |",
	} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("the report lacks %s:\n%s", want, out)
		}
	}
	if strings.Contains(out, "idle") {
		t.Error("the report has a row of zeros")
	}
}
