// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package same_test

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/same/corpus"
	"github.com/mlbatch/mlbatch/test/same/rows"
)

var (
	shard   = flag.String("same.shard", "quick", "the objects to run: quick, all, known, restarts, or i/n for every n-th of all from the i-th on")
	only    = flag.String("same.only", "", "run the objects whose names begin with one of these words, separated by commas")
	seed    = flag.Uint64("same.seed", 1, "which objects are generated")
	retries = flag.Bool("same.retries", false, "let AppWrappers begin again, as often as they do by default")
	once    = flag.Bool("same.once", false, "believe a difference at once, and do not look for it a second time")
	found   = flag.String("same.findings", "", "the file into which transcripts are written")
)

const (
	// atATime is how many objects run at the same time, each of them twice.
	atATime = 36
	// apart is how long after one object the next one is created: this is no test of load.
	apart = 700 * time.Millisecond
)

// The same happens to an object whether or not it is in an AppWrapper.
func TestWrappingChangesNothing(t *testing.T) {
	all, err := corpus.All(t.Context(), *seed)
	if err != nil {
		t.Fatal(err)
	}
	selected := choose(t, all)
	known, err := rows.Read("rows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := start(t)
	began := time.Now()
	results := w.runAll(selected, 1)
	if !*once {
		w.again(results, known)
	}
	t.Logf("%d objects ran within %s", len(results), time.Since(began).Round(time.Second))
	w.write(results, known)
	for i, result := range results {
		t.Run(selected[i].Name, func(t *testing.T) {
			if wrong := known.Judge(result.Result); wrong != "" {
				t.Errorf("%s\n%s", wrong, result.details())
			}
		})
	}
}

// choose returns the objects that the flags ask for.
func choose(t *testing.T, all []corpus.Case) (chosen []corpus.Case) {
	t.Helper()
	if *only != "" {
		for _, c := range all {
			for word := range strings.SplitSeq(*only, ",") {
				if strings.HasPrefix(c.Name, word) {
					chosen = append(chosen, c)
					break
				}
			}
		}
		return chosen
	}
	chosen, err := corpus.Shard(all, *shard)
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

// runAll runs objects at the same time.
func (w *world) runAll(cases []corpus.Case, attempt int) []*result {
	results := make([]*result, len(cases))
	free := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for i, c := range cases {
		free <- struct{}{}
		time.Sleep(apart)
		all.Go(func() {
			defer func() { <-free }()
			began := time.Now()
			results[i] = w.compare(c, attempt)
			w.t.Logf("%s took %s: %s%s", c.Name, time.Since(began).Round(time.Second), results[i].Refusal, strings.Join(results[i].Differences, "; "))
		})
	}
	all.Wait()
	return results
}

// again runs objects of which something is wrong a second time. A difference counts if it is there again: on a slow
// machine, one pod may be ready before an operator has come to create the next one.
func (w *world) again(results []*result, known rows.Rows) {
	var cases []corpus.Case
	var of []int
	for i, r := range results {
		if known.Judge(r.Result) != "" && len(r.Differences) > 0 {
			cases, of = append(cases, r.of), append(of, i)
		}
	}
	for i, r := range w.runAll(cases, 2) {
		r.Differences = rows.Twice(results[of[i]].Differences, r.Differences)
		results[of[i]] = r
	}
}

// write logs the table. Into the file that a flag names, it writes both transcripts of what differs, and of all objects
// if they were asked for by name.
func (w *world) write(results []*result, known rows.Rows) {
	w.t.Helper()
	var table rows.Table
	var transcripts strings.Builder
	for _, r := range results {
		table = append(table, r.Result)
		if len(r.Differences) > 0 || *only != "" {
			transcripts.WriteString(r.details())
		}
	}
	w.t.Logf("bare and wrapped:\n%s", table.Text(known))
	if *found != "" {
		if err := os.WriteFile(*found, []byte(transcripts.String()), 0o644); err != nil {
			w.t.Error(err)
		}
	}
}
