// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func example() *report {
	return &report{
		Began:    second(0),
		Steps:    []duration{{"start the cluster", 12.3}},
		Timeline: []happening{{0, "submitted", "by alice"}, {9, "AppWrapper Succeeded", ""}},
		Training: &training{
			WorldSize: 2, Epochs: 20, AllReduceSum: 3, FirstLoss: 2.3, LastLoss: 0.05, Accuracy: 0.96,
			met: second(3), began: second(4), ended: second(6),
		},
		Phase: "Succeeded",
	}
}

func TestTrainingEventsAreSortedIntoTheTimeline(t *testing.T) {
	r := example()
	r.learned(second(1))
	want := []happening{
		{0, "submitted", "by alice"},
		{2, "processes met", "all-reduce over 2 processes gave 3"},
		{3, "training began", "loss 2.300"},
		{5, "training ended", "loss 0.050 after 20 epochs"},
		{9, "AppWrapper Succeeded", ""},
	}
	if diff := cmp.Diff(want, r.Timeline); diff != "" {
		t.Error(diff)
	}
}

func TestTheReportCreatesItsFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dist", "demo.json")
	if err := example().write(path, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := &report{}
	if err := json.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), got, cmpopts.IgnoreUnexported(training{})); diff != "" {
		t.Error(diff)
	}
	if err := example().write(filepath.Join(path, "x"), nil); err == nil || !strings.HasPrefix(err.Error(), "cannot write the report: ") {
		t.Errorf("a path below a file gives %v", err)
	}
}

func TestAFailureReplacesTheReportOfAnEarlierSuccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.json")
	if err := errors.Join(example().write(path, nil), (&report{}).write(path, errors.New("no disk"))); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data); !strings.Contains(got, `"error": "no disk"`) || strings.Contains(got, "Succeeded") {
		t.Errorf("the report is\n%s", got)
	}
}

func TestTheSummaryShowsStepsTimelineAndTraining(t *testing.T) {
	var out bytes.Buffer
	example().print(&out)
	for _, want := range []string{
		"   12.3 s  start the cluster\n", "   0.00 s  submitted ", "   9.00 s  AppWrapper Succeeded ",
		"2 processes trained together; the all-reduce gave 3; loss 2.300 → 0.050; accuracy 96.0 %\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the screen lacks %q:\n%s", want, out.String())
		}
	}
}

func TestStepsAreRounded(t *testing.T) {
	r := &report{}
	r.step("x", 1234*time.Millisecond)
	if diff := cmp.Diff([]duration{{"x", 1.2}}, r.Steps); diff != "" {
		t.Error(diff)
	}
}
