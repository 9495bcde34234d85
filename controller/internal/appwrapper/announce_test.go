// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/golden"
)

// chartsVerbosity is the chart's default verbosity.
const chartsVerbosity = 2

// logLine is a line of the log, and how many writes came before it.
type logLine struct {
	text   string
	writes int
}

// logged runs one reconcile of "a" and returns the log lines.
func (w *world) logged(verbosity int) (lines []logLine, result reconcile.Result) {
	w.Helper()
	sink := funcr.New(func(_, line string) { lines = append(lines, logLine{line, len(w.writes)}) }, funcr.Options{Verbosity: verbosity})
	result, err := w.reconciler.Reconcile(log.IntoContext(w.Context(), sink),
		reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}})
	if err != nil {
		w.Fatal(err)
	}
	return lines, result
}

// tells reconciles until nothing changes, writes down the log, and expects one line per decision.
func (w *world) tells(story *strings.Builder, event string) {
	w.Helper()
	story.WriteString("# " + event + "\n")
	for range 20 {
		done := len(w.writes)
		lines, result := w.logged(9)
		w.expectOneLineEach(done, lines)
		for _, line := range lines {
			story.WriteString(line.text + "\n")
		}
		if len(w.writes) == done && result.RequeueAfter != atOnce {
			return
		}
	}
	w.Fatal("does not settle")
}

// expectOneLineEach: a decision has at most one save before its line, and only one that has saved
// or acted is followed by another in the same reconcile.
func (w *world) expectOneLineEach(done int, lines []logLine) {
	w.Helper()
	if len(lines) == 0 {
		w.Fatal("a reconcile has no line")
	}
	for n, line := range lines {
		next := len(w.writes)
		if n+1 < len(lines) {
			next = lines[n+1].writes
		}
		saved, acted := w.savesAmong(done, line.writes), next-line.writes-w.savesAmong(line.writes, next)
		if last := n+1 == len(lines); saved > 1 || !last && saved+acted == 0 || last && w.savesAmong(line.writes, next) > 0 {
			w.Fatalf("one decision has one line: %v after the writes %q", lines, w.writes)
		}
		done = line.writes
	}
}

// savesAmong counts how often the status was saved, from one number of writes to another.
func (w *world) savesAmong(from, to int) (n int) {
	for _, write := range w.writes[from:to] {
		if write == "patch status of a" {
			n++
		}
	}
	return n
}

// Somebody may have emptied the status.
func TestALineNamesWhatNoStatusDoes(t *testing.T) {
	w := runningWorld(t)
	aw := w.get()
	aw.Status = v1beta2.AppWrapperStatus{}
	if err := w.api.Status().Update(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
	w.delete()
	w.now = w.get().DeletionTimestamp.Time
	lines, _ := w.logged(chartsVerbosity)
	if len(lines) == 0 || !strings.Contains(lines[0].text, `"targets"=["Job/j"]`) {
		t.Errorf("it says %v", lines)
	}
}

func TestEachDecisionHasOneLineInTheLog(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	var story strings.Builder
	w.tells(&story, "it is created and admitted")
	w.add(pod("j-1", corev1.PodRunning))
	w.tells(&story, "the pod runs")
	w.setJobCondition("j", "Failed")
	w.tells(&story, "the Job has failed")
	if err := w.api.Delete(t.Context(), pod("j-1", "")); err != nil {
		t.Fatal(err)
	}
	w.tells(&story, "the pod is gone")
	w.now = w.now.Add(2 * time.Minute)
	w.tells(&story, "the pause is over")
	w.setJobCondition("j", "Complete")
	w.tells(&story, "the Job is complete")
	golden.Compare(t, "testdata/log.golden", []byte(story.String()))
}

func TestAHealthyAppWrapperWritesNothingIntoTheLog(t *testing.T) {
	w := runningWorld(t)
	if lines, _ := w.logged(chartsVerbosity); len(lines) > 0 {
		t.Errorf("the log has %v", lines)
	}
}
