// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/golden"
)

const root = "../../.."

func readOf(t *testing.T, folder string) evidence {
	t.Helper()
	e, err := read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (e evidence) mustPage(t *testing.T) []byte {
	t.Helper()
	page, err := e.page()
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// The numbers of testdata are made up.
func TestThePageAndThePicturesOfAReport(t *testing.T) {
	e := readOf(t, "testdata")
	golden.Compare(t, "testdata/benchmarks.golden", e.mustPage(t))
	charts, err := json.MarshalIndent(e.charts(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/charts.golden", append(charts, '\n'))
}

func TestWhatWasNotMeasuredIsNotOnThePage(t *testing.T) {
	e := readOf(t, t.TempDir())
	page := string(e.mustPage(t))
	for _, target := range []string{"bench", "bench-compare", "bench-kueue", "bench-reaction", "bench-faults"} {
		if !strings.Contains(page, "Nothing is published yet: `make "+target+"` measures it.") {
			t.Errorf("the page does not say that `make %s` measures what is missing", target)
		}
	}
	if strings.Contains(page, "images/") || len(e.charts()) > 0 {
		t.Error("there are pictures of nothing")
	}
}

func TestAReportThatCannotBeReadIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(dir); err == nil || !strings.Contains(err.Error(), "cannot read what was measured") {
		t.Errorf("got %v", err)
	}
}

// Whoever commits numbers commits the page and the pictures, which 'make bench' writes.
func TestThePageIsThatOfTheCommittedNumbers(t *testing.T) {
	e := readOf(t, filepath.Join(root, "docs", "evidence"))
	golden.Compare(t, filepath.Join(root, "docs", "evidence", "benchmarks.md"), e.mustPage(t))
	for _, chart := range e.charts() {
		picture, err := os.ReadFile(filepath.Join(root, "docs", "images", chart.Name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := json.Marshal(chart)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(html.UnescapeString(string(picture)), "<metadata>"+string(numbers)+"</metadata>") {
			t.Errorf("the picture %s has other numbers: run go run ./test/bench/report", chart.Name)
		}
	}
}

func TestAPictureIsDrawn(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "docs", "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	plot, err := filepath.Abs(filepath.Join(root, "test", "bench", "plot"))
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "test", "bench"), 0o755)
	}
	if err == nil {
		err = os.Symlink(plot, filepath.Join(dir, "test", "bench", "plot"))
	}
	if err != nil {
		t.Fatal(err)
	}
	chart := bench.Chart{Name: "x", Title: "a & b", Unit: "s", Rows: []string{"r"}, Series: []bench.Series{{Name: "a", Values: []float64{1}}}}
	if err := draw(t.Context(), dir, chart); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(filepath.Join(dir, "docs", "images", "x.svg"))
	if err != nil || !strings.Contains(string(picture), "<title>a &amp; b</title>") {
		t.Errorf("%v: %s", err, picture)
	}
}
