// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/bench"
)

func TestTheTaxIsWhatAnAppWrapperCostsBesideAJobInTheSameQueue(t *testing.T) {
	result := func(scenario string, requests, cpu, p50, p99 float64) bench.Result {
		return bench.Result{
			Scenario: scenario, Requests: map[string]map[string]float64{"admin": {"create x": 1}, "kueue": {"y": requests - 1}},
			CPU:   map[string]float64{"etcd": 1, "kube-apiserver": cpu - 1},
			Times: map[string]bench.Quantiles{bench.ToRunning: {P50: p50, P99: p99}},
		}
	}
	r := bench.Report{Results: []bench.Result{
		result("job", 11, 40, 20, 200), result("wrapper", 20, 60.5, 30, 190), result("alone", 99, 99, 99, 99), result("wrapper", 22, 60.5, 30, 190),
		result("no-partner", 50, 50, 50, 50),
	}}
	got := r.Tax([]bench.Scenario{
		{Name: "alone", Number: 3, Bare: true}, {Name: "job", Number: 3, Bare: true, Queued: true}, {Name: "wrapper", Number: 3, Queued: true},
		{Name: "no-partner", Number: 4, Queued: true},
	})
	want := `| through a queue | what | a bare Job | an AppWrapper | more |
|---|---|---|---|---|
| 3 at once | requests of a life by all | 11.0 | 21.0 (20.0–22.0) | 10.0 |
| 3 at once | processor time of a life by all, ms | 40.0 | 60.5 | 20.5 |
| 3 at once | to Running, p50, ms | 20.0 | 30.0 | 10.0 |
| 3 at once | to Running, p99, ms | 200 | 190 | -10.0 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
