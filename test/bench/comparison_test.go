// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/bench"
)

// A machine that gets slower during the measurement must not prefer anybody for long.
func TestTurnsAlternate(t *testing.T) {
	var order []string
	for _, turn := range bench.Schedule(2) {
		order = append(order, fmt.Sprint(turn.By, turn.Pair))
	}
	if got, want := strings.Join(order, " "), "bare1 upstream1 ours1 bare2 upstream2 ours2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func turn(by string, pair int, rate, requests, cpu float64) bench.Turn {
	return bench.Turn{By: by, Pair: pair, Result: bench.Result{
		Scenario: "burst", PerSecond: rate, Requests: map[string]map[string]float64{by: {"get jobs": requests}, "admin": {"create jobs": 1}},
		CPU: map[string]float64{by: cpu}, Times: map[string]bench.Quantiles{bench.ToRunning: {P50: 100 * rate, P99: 200 * rate}},
	}}
}

// The second pair is on a machine that is half as fast, which ratios do not show.
func TestRatiosAreOfTheSamePair(t *testing.T) {
	c := bench.Comparison{Results: []bench.Turn{
		turn(bench.Bare, 1, 40, 0, 0), turn(bench.Upstream, 1, 8, 20, 30), turn(bench.OurOwn, 1, 16, 10, 15),
		turn(bench.Bare, 2, 20, 0, 0), turn(bench.Upstream, 2, 4, 20, 60), turn(bench.OurOwn, 2, 10, 10, 15),
	}}
	got := c.Tables([]bench.Scenario{{Name: "other", Says: "nothing of it"}, {Name: "burst", Says: "300 at once"}})
	for _, want := range []string{
		"300 at once:\n\n| ",
		"| lives a second | 30.0 (20.0–40.0) | 6.00 (4.00–8.00) | 13.0 (10.0–16.0) | 2.25 (2.00–2.50) | 0.45 (0.40–0.50) |",
		"| requests of a life by the controller |  | 20.0 | 10.0 | 0.50 |  |",
		"| requests of a life by all | 1.00 | 21.0 | 11.0 | 0.52 | 11.0 |",
		"| processor time of the controller of a life, ms |  | 45.0 (30.0–60.0) | 15.0 | 0.38 (0.25–0.50) |  |",
		"| deleted to gone, p50, ms | 0 | 0 | 0 |  |  |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the comparison lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "nothing of it") {
		t.Error("what was not measured is compared")
	}
}
