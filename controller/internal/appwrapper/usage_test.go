// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// gpuWorld has two pods with 8 GPUs each. Kueue has reserved the quota for ten minutes before it
// gives it to the AppWrapper.
func gpuWorld(t *testing.T, devices ...string) *world {
	t.Helper()
	aw := gpuJob()
	aw.Status = v1beta2.AppWrapperStatus{}
	w := newWorld(t, aw)
	reserved := w.now
	w.reconciler.devices = devices
	w.reconciler.reserved = func(context.Context, types.UID) (time.Time, error) { return reserved, nil }
	w.settle()
	w.now = w.now.Add(10 * time.Minute)
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = false })
	w.settle()
	return w
}

// The pods work until a user deletes them. No status has the time until they are gone, and none says that
// they are going if that is soon.
func TestTheBooksAreClosedWhenTheAppWrapperGoes(t *testing.T) {
	for _, ending := range []time.Duration{3 * time.Second, time.Minute} {
		t.Run(ending.String(), func(t *testing.T) {
			w := gpuWorld(t, "example.com/gpu")
			names := []string{"j-1", "j-2"}
			for _, name := range names {
				w.add(pod(name, corev1.PodRunning))
			}
			w.settle()
			began := w.now
			if err := w.api.Delete(w.Context(), w.get()); err != nil {
				t.Fatal(err)
			}
			deleted := w.get().DeletionTimestamp.Time
			for w.now = deleted; w.now.Before(deleted.Add(ending)); w.now = w.now.Add(time.Second) {
				w.settle()
			}
			for _, name := range names {
				if err := w.api.Delete(w.Context(), pod(name, corev1.PodRunning)); err != nil {
					t.Fatal(err)
				}
			}
			w.reconcile()
			checkUsage(t, w, map[string]time.Duration{"Ending": ending, "Starting": 10 * time.Minute, "Useful": deleted.Sub(began)})
		})
	}
}

// checkUsage compares the counters of an AppWrapper with 16 GPUs.
func checkUsage(t *testing.T, w *world, want map[string]time.Duration) {
	t.Helper()
	var got, series []string
	for _, s := range scrape(t, w.reconciler.metrics) {
		if strings.HasPrefix(s.name, "appwrapper_usage") {
			got = append(got, s.String())
		}
	}
	for class, used := range want {
		series = append(series,
			fmt.Sprintf(`appwrapper_usage_device_seconds_total{class=%q,namespace="team-a",resource="example.com/gpu"} %v`, class, 16*used.Seconds()),
			fmt.Sprintf(`appwrapper_usage_seconds_total{class=%q,namespace="team-a"} %v`, class, used.Seconds()))
	}
	slices.Sort(series)
	if !slices.Equal(got, series) {
		t.Errorf("got %q, want %q", got, series)
	}
}

// The first lump may be a week. Who names resources is not the author of an AppWrapper.
func TestEverySeriesIsThereBeforeItsFirstLump(t *testing.T) {
	w := gpuWorld(t)
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.reconciler.metrics.deviceUsage)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, series := range families[0].GetMetric() {
		var labels []string
		for _, label := range series.GetLabel() {
			labels = append(labels, label.GetValue())
		}
		got = append(got, strings.Join(labels, " "))
	}
	want := []string{
		"Ending team-a Other", "Held team-a Other", "Idle team-a Other", "LostToFailure team-a Other", "LostToHang team-a Other", "LostToNode team-a Other",
		"LostToPreemption team-a Other", "Pausing team-a Other", "Starting team-a Other", "Useful team-a Other",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestWithoutKnowingTheReservationNothingBegins(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).InPhase(v1beta2.AppWrapperSuspended).WithFinalizer().Unsuspended().Build())
	w.reconciler.reserved = func(context.Context, types.UID) (time.Time, error) { return time.Time{}, errors.New("no cache") }
	if _, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.get())}); err == nil || len(w.writes) > 0 {
		t.Errorf("error %v, writes %q", err, w.writes)
	}
}

func TestTheBooksOfTheDocumentation(t *testing.T) {
	l := live(t, told("suspension after a checkpoint"), troubles.Reliable(nil), nil)
	text, err := yaml.Marshal(map[string]any{"status": map[string]any{"usage": l.api.theOne().Status.Usage}})
	if err != nil {
		t.Fatal(err)
	}
	golden.Between(t, filepath.Join("..", "..", "..", "docs", "fault-tolerance.md"),
		"<!-- the status: written by go test ./controller/internal/appwrapper -update -->\n", "<!-- end of the status -->\n",
		"\n```yaml\n"+string(text)+"```\n\n")
}
