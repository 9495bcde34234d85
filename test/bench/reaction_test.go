// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/bench"
)

// sitting has a row for each of "by fault nodes", which took so many seconds.
func sitting(commit string, nodes int, seconds float64, rows ...string) bench.Sitting {
	s := bench.Sitting{Head: bench.Head{Commit: commit}, Nodes: nodes}
	for _, row := range rows {
		fields := strings.Fields(row)
		s.Results = append(s.Results, bench.Reaction{By: fields[0], Fault: fields[1], Nodes: len(fields[2]), Again: bench.Quantiles{P50: 1000 * seconds}})
	}
	return s
}

func TestANewReactionReplacesTheOldOneOfTheSameFault(t *testing.T) {
	var got bench.Reactions
	for _, s := range []bench.Sitting{
		sitting("old", 50, 1, "us crash |", "us crash ||", "them crash |"),
		sitting("old", 1000, 1, "us crash |"),
		sitting("new", 50, 2, "us crash |"),
		sitting("new", 50, 3, "them crash |"),
		sitting("other", 9, 1, "us crash |"),
		sitting("another", 9, 2, "us crash |"),
	} {
		got = got.With(s)
	}
	again := sitting("new", 50, 2, "us crash |", "them crash |")
	again.Results[1].Again.P50 = 3000
	want := bench.Reactions{
		sitting("old", 1000, 1, "us crash |"),
		sitting("old", 50, 1, "us crash ||"),
		again,
		sitting("another", 9, 2, "us crash |"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Slices share what is behind them: what was known must stay as it was.
func TestTheReactionsBeforeStayAsTheyWere(t *testing.T) {
	before := bench.Reactions{sitting("old", 50, 1, "us crash |", "us lost |")}
	before.With(sitting("new", 50, 2, "us crash |"))
	if diff := cmp.Diff(bench.Reactions{sitting("old", 50, 1, "us crash |", "us lost |")}, before); diff != "" {
		t.Error(diff)
	}
}

func TestASingleSittingIsReadAsOneOfSeveral(t *testing.T) {
	want := bench.Reactions{sitting("old", 50, 1, "us crash |")}
	for _, value := range []any{want[0], want} {
		text, err := json.Marshal(map[string]any{"reactions": value})
		if err != nil {
			t.Fatal(err)
		}
		var got bench.Report
		if err := json.Unmarshal(text, &got); err != nil {
			t.Errorf("%s cannot be read: %v", text, err)
		}
		if diff := cmp.Diff(want, got.Reactions); diff != "" {
			t.Error(diff)
		}
	}
	if err := json.Unmarshal([]byte(`{"reactions": "none"}`), &bench.Report{}); err == nil {
		t.Error("text was read as reactions")
	}
}

func TestWhatFollowedTheSameFaultIsSideBySide(t *testing.T) {
	table := sitting("new", 50, 1, "us lost |", "us lost ||", "us crash |", "them lost |", "them crash |", "them lost ||").Table()
	var got []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) > 3 && strings.Contains(cells[2], "us") || strings.Contains(line, "them") {
			got = append(got, strings.TrimPrefix(cells[0], "| ")+" "+cells[1]+" "+cells[2])
		}
	}
	want := []string{"lost 1 us", "lost 1 them", "lost 2 us", "lost 2 them", "crash 1 us", "crash 1 them"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
