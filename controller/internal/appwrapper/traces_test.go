// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/stories"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// trace is what a job shows over time, and what has to come of it. testdata/traces/README.md explains it.
type trace struct {
	Story string   `json:"story"`
	Grace duration `json:"grace"`
	Lasts duration `json:"lasts"`
	// Ranks is how many pods there are; 0 is 1.
	Ranks int32 `json:"ranks"`
	// Sidecar: each pod has a second container, without a probe.
	Sidecar bool `json:"sidecar"`
	// Startup is how long the container's startup probe fails; 0: it has none.
	Startup duration `json:"startup"`
	// Volume: the file outlives the container; one is there from an earlier attempt.
	Volume  bool           `json:"volume"`
	Verdict verdictOfTrace `json:"verdict"`
	// Hangs is when the last progress was made.
	Hangs duration `json:"hangs"`
	Life  []entry  `json:"life"`
}

type verdictOfTrace string

const (
	untouched  verdictOfTrace = "untouched"
	noProgress verdictOfTrace = "NoProgress"
)

// entry is one thing that happens. Rank says to whom; by default to all.
type entry struct {
	At   duration `json:"at"`
	Rank *int     `json:"rank"`

	Step        duration `json:"step"`        // the program writes its file every so often
	Stop        bool     `json:"stop"`        // it does not any more
	Pause       duration `json:"pause"`       // it announces a pause, and does not write
	Restart     duration `json:"restart"`     // the container ends, and starts again so long after
	Probe       string   `json:"probe"`       // "times out", or "works" again
	Kubelet     string   `json:"kubelet"`     // "restarts"
	Node        string   `json:"node"`        // "silent", or "back"
	Clock       duration `json:"clock"`       // how far that of the node is ahead
	SidecarEnds bool     `json:"sidecarEnds"` // the second container ends

	Devices lifecycle.Activity `json:"devices"` // what the query of the administrator says
}

// happens tells those to whom it happens.
func (e entry) happens(ranks []*rank, now time.Time) {
	for i, r := range ranks {
		if e.Rank == nil || *e.Rank == i {
			r.happens(e, now)
		}
	}
}

// isOfQuery: it does not happen to a rank.
func (e entry) isOfQuery() bool { return e.Devices != "" }

// duration is one in the syntax of Go.
type duration struct{ time.Duration }

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(text []byte) error {
	var err error
	d.Duration, err = time.ParseDuration(strings.Trim(string(text), `"`))
	return err
}

// tick is how often the probe of the generator is run.
const tick = 15 * time.Second

// Each trace is played to the real reconciler with its caches, by kubelets that run the generator's probe.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "traces", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	program, verdicts := generated(t), map[verdictOfTrace]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tr trace
		if err := yaml.UnmarshalStrict(text, &tr); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		verdicts[tr.Verdict]++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { tr.check(t, program) })
	}
	t.Logf("%d traces: %v; the probe ran %d times", len(files), verdicts, len(program.said))
	if verdicts[untouched] < 12 || len(files) < 20 || verdicts[untouched]+verdicts[noProgress] != len(files) {
		t.Errorf("too few traces, or an unknown verdict: %v", verdicts)
	}
	says := fmt.Sprintf("[%d traces](testing.md#traces) of jobs, %d of them healthy", len(files), verdicts[untouched])
	if guide := strings.Join(strings.Fields(document(t, "fault-tolerance.md")), " "); !strings.Contains(guide, says) {
		t.Errorf("docs/fault-tolerance.md does not say %q", says)
	}
}

// check plays the trace as a story.
func (tr trace) check(t *testing.T, program *generatedProgram) {
	ranks := max(tr.Ranks, 1)
	story := stories.Story{
		Name: tr.Story, MigrationLimit: 10, Components: []stories.Component{{Kind: "Job", Name: "train", Pods: ranks}},
		Annotations: map[string]string{v1beta2.NoProgressGracePeriodDurationAnnotation: tr.Grace.String()},
	}
	l := live(t, story, troubles.Reliable(nil), nil)
	l.Admit()
	l.react()
	tr.play(l, program)
}

// play lets the trace happen, and looks at the AppWrapper after each tick.
func (tr trace) play(l *life, program *generatedProgram) {
	query := &second{}
	if slices.ContainsFunc(tr.Life, entry.isOfQuery) {
		l.process.reconciler.activity = query.activity
	}
	var ranks []*rank
	for _, p := range l.podsOf(0) {
		ranks = append(ranks, newRank(tr, p.Name, program, l.now))
	}
	began, next := l.now, 0
	for l.now.Sub(began) < tr.Lasts.Duration {
		for ; next < len(tr.Life) && tr.Life[next].At.Duration <= l.now.Sub(began); next++ {
			if e := tr.Life[next]; e.isOfQuery() {
				query.says = e.Devices
			} else {
				e.happens(ranks, l.now)
			}
		}
		for _, r := range ranks {
			if change := r.look(l.now); change != nil {
				l.api.change(l.api.find(podKind, r.pod), change)
			}
		}
		l.passTo(l.now.Add(tick))
		if over := tr.judge(l, l.now.Sub(began)); over {
			return
		}
	}
	if tr.Verdict == noProgress {
		l.Errorf("the hang is not found within %s", tr.Lasts)
	}
}

// judge reports whether the trace is over.
func (tr trace) judge(l *life, at time.Duration) bool {
	status := l.api.theOne().Status
	if status.Phase == v1beta2.AppWrapperRunning {
		return false
	}
	why := meta.FindStatusCondition(status.Conditions, string(v1beta2.Unhealthy))
	due := tr.due()
	switch {
	case tr.Verdict == untouched:
		l.Errorf("after %s it is %s, because of %s: a healthy job is touched", at, status.Phase, why.Reason)
	case why.Reason != v1beta2.ReasonNoProgress:
		l.Errorf("after %s it is %s, because of %s", at, status.Phase, why.Reason)
	case at <= due:
		l.Errorf("after %s a hang is found; the grace is not over before %s", at, due)
	case at > due+time.Minute:
		l.Errorf("after %s a hang is found that began at %s: more than a minute after the grace of %s", at, tr.Hangs, tr.Grace)
	default:
		l.Logf("found %s after the grace", at-due)
	}
	return true
}

// due is when the grace is over or, if that is later, the devices do not compute any more.
func (tr trace) due() time.Duration {
	due := tr.Hangs.Duration + tr.Grace.Duration
	for i, e := range tr.Life {
		computed := i > 0 && slices.ContainsFunc(tr.Life[:i], func(before entry) bool { return before.Devices == lifecycle.ActivityComputes })
		if e.isOfQuery() && e.Devices != lifecycle.ActivityComputes && computed {
			due = max(due, e.At.Duration)
		}
	}
	return due
}
