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

	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/golden"
)

// chartsVerbosity is the chart's default verbosity.
const chartsVerbosity = 2

// logged runs one reconcile of "a" and returns the log lines.
func (w *world) logged(verbosity int) (lines []string, result reconcile.Result) {
	w.Helper()
	sink := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: verbosity})
	result, err := w.reconciler.Reconcile(log.IntoContext(w.Context(), sink),
		reconcile.Request{NamespacedName: client.ObjectKey{Namespace: given.Namespace, Name: "a"}})
	if err != nil {
		w.Fatal(err)
	}
	return lines, result
}

// tells reconciles until nothing changes, and writes down the log.
func (w *world) tells(story *strings.Builder, event string) {
	w.Helper()
	story.WriteString("# " + event + "\n")
	for range 20 {
		done := len(w.writes)
		lines, result := w.logged(9)
		story.WriteString(strings.Join(lines, "\n") + "\n")
		if len(w.writes) == done && result.RequeueAfter != atOnce {
			return
		}
	}
	w.Fatal("does not settle")
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
		t.Errorf("the log has %q", lines)
	}
}
