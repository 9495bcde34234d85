// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/metricspage"
	"github.com/mlbatch/mlbatch/test/stories"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// sample is one series of a scrape; a histogram has its count and its sum.
type sample struct {
	name, labels string
	value        float64
}

func (s sample) String() string {
	return fmt.Sprintf("%s{%s} %v", s.name, s.labels, s.value)
}

// scrape returns the series that are not zero.
func scrape(t *testing.T, m *metrics) []sample {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.all()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	for _, family := range families {
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			add := func(suffix string, value float64) {
				if value != 0 {
					all = append(all, sample{family.GetName() + suffix, strings.Join(labels, ","), value})
				}
			}
			add("", series.GetCounter().GetValue())
			add("_count", float64(series.GetHistogram().GetSampleCount()))
			add("_sum", series.GetHistogram().GetSampleSum())
		}
	}
	return all
}

func told(name string) stories.Story {
	all := stories.All()
	return all[slices.IndexFunc(all, func(s stories.Story) bool { return s.Name == name })]
}

// The metrics at the end of whole lives.
func TestMetricsOfLives(t *testing.T) {
	const folder = "testdata/metrics"
	var files []string
	for _, name := range []string{
		"retry then success", "suspension by Kueue while running", "a component that is refused for good", "pods that never start",
	} {
		file := filepath.Join(folder, name+".golden")
		files = append(files, file)
		t.Run(name, func(t *testing.T) {
			var lines strings.Builder
			for _, s := range scrape(t, live(t, told(name), troubles.Reliable(nil), nil).process.reconciler.metrics) {
				fmt.Fprintln(&lines, s)
			}
			golden.Compare(t, file, []byte(lines.String()))
		})
	}
	golden.Only(t, filepath.Join(folder, "*"), files)
}

// A cause or a reason in a label.
var constant = regexp.MustCompile(`(?:cause|reason)="(?:[A-Z][a-z]+)+"`)

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheDocumentationHasTheEvents also looks at all causes and reasons that stories count. The
// golden file has the words of the events of all stories. Programs look for those that AppWrapper
// v1.2.2 has, too: the reasons AutopilotNoExecute, CreateFailed, ExternallySuspended,
// FailedComponent, FoundFailedPods, InsufficientPodsReady and MissingComponent, with their actions.
func TestTheDocumentationHasTheEvents(t *testing.T) {
	page, events := document(t, "monitoring.md"), map[string]bool{}
	for _, story := range stories.All() {
		l := live(t, story, troubles.Reliable(nil), nil)
		for event := range l.told {
			events[event] = true
			words := strings.Fields(event)
			if row := fmt.Sprintf("| %s | `%s` | `%s` | ", words[0], words[1], words[2]); !strings.Contains(page, row) {
				t.Errorf("docs/monitoring.md has no row %s", row)
			}
		}
		for _, s := range scrape(t, l.process.reconciler.metrics) {
			labelled := strings.Contains(s.labels, "cause=") || strings.Contains(s.labels, "reason=")
			if strings.Contains(s.labels, `cause="Other"`) || labelled && !constant.MatchString(s.labels) {
				t.Errorf("%s: %s is not one of the constants", story.Name, s)
			}
		}
	}
	golden.Compare(t, "testdata/events.golden", []byte(strings.Join(slices.Sorted(maps.Keys(events)), "\n")+"\n"))
}

// A new leader's counters start from zero. It measures durations from the times in the status.
func TestANewLeaderMeasuresWhatBeganUnderAnother(t *testing.T) {
	w := runningWorld(t)
	var err error
	if w.reconciler.metrics, err = newMetrics(prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	w.setJobCondition("j", "Failed")
	w.settle()
	want := []sample{
		{"appwrapper_phase_duration_seconds_count", `phase="Running"`, 1},
		{"appwrapper_phase_duration_seconds_sum", `phase="Running"`, 3600},
		{"appwrapper_phase_total", `namespace="team-a",phase="Resetting"`, 1},
		{"appwrapper_resets_total", `cause="FailedComponent"`, 1},
		{"appwrapper_transitions_total", `cause="ComponentFailed",from="Running",to="Resetting"`, 1},
		{"appwrapper_usage_seconds_total", `class="LostToFailure",namespace="team-a"`, 3600},
	}
	if got := scrape(t, w.reconciler.metrics); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// Prometheus takes a decreasing sum for a restart of the process.
func TestNoSumFallsWhenAClockIsSetBack(t *testing.T) {
	w := runningWorld(t)
	w.now = w.now.Add(-time.Hour)
	w.setJobCondition("j", "Failed")
	w.settle()
	w.expectPhase(v1beta2.AppWrapperResetting)
	for _, s := range scrape(t, w.reconciler.metrics) {
		if s.value < 0 {
			t.Error(s)
		}
	}
}

func TestWhatIsMeasuredFromWhenQuotaWasGiven(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Build())
	w.settle()
	w.now = w.now.Add(time.Hour) // the wait for quota does not count
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = false })
	refused := 0
	w.refuse = func(client.Object) error {
		if refused++; refused > 1 {
			return nil
		}
		return errors.New("connection refused")
	}
	w.settle()
	w.now = w.now.Add(3 * time.Second)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.now = w.now.Add(4 * time.Second)
	w.add(pod("j-1", "Running"))
	w.settle()
	const created, ready = "appwrapper_unsuspend_to_created_seconds_sum{} 3", "appwrapper_unsuspend_to_ready_seconds_sum{} 7"
	for _, want := range []string{created, ready} {
		if !slices.ContainsFunc(scrape(t, w.reconciler.metrics), func(s sample) bool { return s.String() == want }) {
			t.Errorf("no %s in %v", want, scrape(t, w.reconciler.metrics))
		}
	}
}

func TestLabelsHaveAClosedSetOfValues(t *testing.T) {
	t.Run("a webhook gives any text for its reason", func(t *testing.T) {
		w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
		w.refuse = func(client.Object) error {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Reason: "user 4711 is tired"}}
		}
		w.settle()
		expectSample(t, w, `appwrapper_creation_failures_total{reason="Other"} 1`)
	})
	t.Run("a status has any text for its phase", func(t *testing.T) {
		w := runningWorld(t)
		aw := w.get()
		aw.Status.Phase = "Levitating"
		if err := w.api.Status().Update(w.Context(), aw); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Delete(w.Context(), aw); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		expectSample(t, w, `appwrapper_transitions_total{cause="Deleted",from="Other",to="Terminating"} 1`)
	})
}

// Series of a namespace go with it, whatever metric they are of.
func TestANamespaceIsForgotten(t *testing.T) {
	m := gpuWorld(t, "example.com/gpu").reconciler.metrics
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.all()...)
	ofTeam := func() (found []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if strings.Contains(fmt.Sprint(family.GetMetric()), `"team-a"`) {
				found = append(found, family.GetName())
			}
		}
		return found
	}
	if before := ofTeam(); len(before) != 3 {
		t.Errorf("a namespace has series of %v", before)
	}
	m.forget("team-a")
	if after := ofTeam(); len(after) > 0 {
		t.Errorf("series of %v stay", after)
	}
}

func expectSample(t *testing.T, w *world, want string) {
	t.Helper()
	all := scrape(t, w.reconciler.metrics)
	if !slices.ContainsFunc(all, func(s sample) bool { return s.String() == want }) {
		t.Errorf("no %s in %v", want, all)
	}
}

// Prometheus detects no increase in a series that first appears with its first increment.
func TestWhatAlertsAskForIsThereBeforeItHappens(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := newMetrics(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, family := range families {
		series[family.GetName()] = len(family.GetMetric())
	}
	for name, want := range map[string]int{
		"appwrapper_resets_total":            len(resetCauses) + 1,
		"appwrapper_creation_failures_total": len(refusalReasons) + 1,
		"appwrapper_surplus_total":           1,
		"appwrapper_migrations_total":        len(nodehealth.Sources()),
	} {
		if series[name] != want {
			t.Errorf("%s has %d series, not %d", name, series[name], want)
		}
	}
}

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]+)", unit: "[^"]*", constLabels: \{\}, variableLabels: \{([^}]*)\}`)

func TestTheDocumentationHasTheMetrics(t *testing.T) {
	metricspage.Compare(t, "controller/internal/appwrapper", func(registry prometheus.Registerer) error {
		_, err := newMetrics(registry)
		return err
	})
}

// TestMetricsInTheDocumentationExist also reads what the charts ask Prometheus for.
func TestMetricsInTheDocumentationExist(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, c := range m.all() {
		descriptions := make(chan *prometheus.Desc, 1)
		c.Describe(descriptions)
		name := described.FindStringSubmatch((<-descriptions).String())[1]
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			exists[name+suffix] = true
		}
	}
	root, name := filepath.Join("..", "..", ".."), regexp.MustCompile(`\bappwrapper_[a-z_]+`)
	found := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "charts/*/README.md", "charts/appwrapper/files/*", "charts/appwrapper/templates/*"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, syscall.EISDIR) {
				t.Fatal(err)
			}
			for _, metric := range name.FindAllString(string(text), -1) {
				if found++; !exists[metric] {
					t.Errorf("%s: there is no metric %s", file, metric)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names of metrics were found", found)
	}
}
