// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// report is the content of dist/demo.json: the duration of each step, and what happened to
// the job, when and why. Durations are in seconds.
type report struct {
	Began    time.Time   `json:"began"`
	Steps    []duration  `json:"steps"`
	Timeline []happening `json:"timeline"`
	Training *training   `json:"training,omitempty"`
	Phase    string      `json:"phase,omitempty"`
	// Error is the error of a failed demo.
	Error string `json:"error,omitempty"`
}

type duration struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// happening is one line of the job's timeline.
type happening struct {
	// Seconds since the job was submitted.
	Seconds float64 `json:"seconds"`
	What    string  `json:"what"`
	Why     string  `json:"why,omitempty"`
}

// training is what the training program reported.
type training struct {
	WorldSize    int     `json:"worldSize"`
	Epochs       int     `json:"epochs"`
	AllReduceSum float64 `json:"allReduceSum"`
	FirstLoss    float64 `json:"firstLoss"`
	LastLoss     float64 `json:"lastLoss"`
	Accuracy     float64 `json:"accuracy"`

	// The times at which the processes connected, and of the first and the last loss.
	met, began, ended time.Time
}

func newReport() *report { return &report{Began: time.Now()} }

func (r *report) step(name string, took time.Duration) {
	r.Steps = append(r.Steps, duration{name, took.Round(100 * time.Millisecond).Seconds()})
}

func (r *report) happened(since time.Time, what, why string) {
	h := happening{time.Since(since).Round(10 * time.Millisecond).Seconds(), what, why}
	r.Timeline = append(r.Timeline, h)
	h.print(os.Stdout)
}

// learned adds the events of the training to the timeline.
func (r *report) learned(since time.Time) {
	t := r.Training
	r.Timeline = append(r.Timeline,
		happening{t.met.Sub(since).Seconds(), "processes met", fmt.Sprintf("all-reduce over %d processes gave %g", t.WorldSize, t.AllReduceSum)},
		happening{t.began.Sub(since).Seconds(), "training began", fmt.Sprintf("loss %.3f", t.FirstLoss)},
		happening{t.ended.Sub(since).Seconds(), "training ended", fmt.Sprintf("loss %.3f after %d epochs", t.LastLoss, t.Epochs)},
	)
	slices.SortStableFunc(r.Timeline, func(a, b happening) int { return cmp.Compare(a.Seconds, b.Seconds) })
}

func (h happening) print(out io.Writer) {
	fmt.Fprintf(out, "%7.2f s  %-42s %s\n", h.Seconds, h.What, h.Why)
}

// print summarizes the run.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "\n== duration of each step\n")
	for _, s := range r.Steps {
		fmt.Fprintf(out, "%7.1f s  %s\n", s.Seconds, s.Name)
	}
	fmt.Fprintf(out, "%7.1f s  total\n\n== timeline of the job\n", time.Since(r.Began).Seconds())
	for _, h := range r.Timeline {
		h.print(out)
	}
	if t := r.Training; t != nil {
		fmt.Fprintf(out, "\n%d processes trained together; the all-reduce gave %g; loss %.3f → %.3f; accuracy %.1f %%\n",
			t.WorldSize, t.AllReduceSum, t.FirstLoss, t.LastLoss, 100*t.Accuracy)
	}
}

// write writes the report to a file, with the error of a failed demo.
func (r *report) write(path string, failure error) error {
	if failure != nil {
		r.Error = failure.Error()
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
