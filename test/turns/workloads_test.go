// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package turns_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

// defaults are those values of charts/mlbatch that decide about preemption.
func defaults(t *testing.T) (chart struct {
	Kueue struct {
		ControllerManager struct {
			FeatureGates []struct {
				Name    string
				Enabled bool
			}
		}
		ManagerConfig struct {
			Configuration struct {
				FairSharing struct{ PreemptionStrategies []string }
			}
		}
	}
},
) {
	t.Helper()
	text, err := os.ReadFile("../../charts/mlbatch/values.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &chart)
	}
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// life is what was seen of a Workload.
type life struct {
	namespace   string
	gpus        int64
	preemptions int32
	admitted    time.Time // of the attempt that runs
	last        time.Time // preemption
	losses      []loss
	waits       time.Time // until then
}

// loss is what a job had done before a preemption: the time of each of its GPUs.
type loss struct {
	at   time.Time
	lost time.Duration
}

// workloads are the lives of all Workloads.
type workloads struct {
	mu    sync.Mutex
	lives map[string]*life
}

func watchWorkloads(t *testing.T, admin client.WithWatch) *workloads {
	t.Helper()
	w := &workloads{lives: map[string]*life{}}
	sandbox.Follow(t, admin, &kueue.WorkloadList{}, func(seen *kueue.Workload, _ bool) { w.hear(seen) })
	return w
}

func (w *workloads) hear(seen *kueue.Workload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := seen.Namespace + "/" + seen.Name
	l := w.lives[key]
	if l == nil {
		l = &life{namespace: seen.Namespace, gpus: gpusOf(seen)}
		w.lives[key] = l
	}
	l.hear(seen)
}

func (l *life) hear(seen *kueue.Workload) {
	if c := meta.FindStatusCondition(seen.Status.Conditions, kueue.WorkloadAdmitted); c != nil && c.Status == metav1.ConditionTrue {
		l.admitted = c.LastTransitionTime.Time
	}
	if n := preemptions(seen); n > l.preemptions {
		evicted := meta.FindStatusCondition(seen.Status.Conditions, kueue.WorkloadEvicted)
		l.preemptions, l.last = n, evicted.LastTransitionTime.Time
		if !l.admitted.IsZero() {
			l.losses = append(l.losses, loss{l.last, l.last.Sub(l.admitted) * time.Duration(l.gpus)})
		}
		l.admitted = time.Time{}
	}
	l.waits = time.Time{}
	if s := seen.Status.RequeueState; s != nil && s.RequeueAt != nil {
		l.waits = s.RequeueAt.Time
	}
}

func gpusOf(w *kueue.Workload) int64 {
	requested := w.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests[gpu]
	return requested.Value()
}

func preemptions(w *kueue.Workload) int32 {
	if w.Status.SchedulingStats != nil {
		for _, e := range w.Status.SchedulingStats.Evictions {
			if e.Reason == kueue.WorkloadEvictedByPreemption {
				return e.Count
			}
		}
	}
	return 0
}

// calm is an error unless nobody was preempted lately, and nobody comes back from a pause soon. Who
// waits until other work ends has a pause of a week.
func (w *workloads) calm(lately time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for name, l := range w.lives {
		if now.Sub(l.last) < lately {
			return fmt.Errorf("%s was preempted %s ago", name, now.Sub(l.last).Round(time.Second))
		}
		if l.waits.After(now) && l.waits.Before(now.Add(2*time.Hour)) {
			return fmt.Errorf("%s waits out a pause", name)
		}
	}
	return nil
}

// count is what was seen of one play.
type count struct {
	jobs map[int32]int // by the number of preemptions of each
	lost time.Duration // by all
	late time.Duration // of that, after the last arrival
	last time.Time
}

func (w *workloads) count(plays []play, p play, arrived time.Time) count {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := count{jobs: map[int32]int{}}
	for _, l := range w.lives {
		if of, ok := of(plays, l.namespace); ok && of.name("") == p.name("") {
			c.add(l, arrived)
		}
	}
	return c
}

func (c *count) add(l *life, arrived time.Time) {
	c.jobs[l.preemptions]++
	for _, x := range l.losses {
		c.lost += x.lost
		if x.at.After(arrived) {
			c.late += x.lost
		}
	}
	if l.last.After(c.last) {
		c.last = l.last
	}
}

// all is the number of jobs, the highest number of preemptions of one, and that of all.
func (c count) all() (jobs int, most, sum int32) {
	for n, those := range c.jobs {
		jobs, most, sum = jobs+those, max(most, n), sum+n*int32(those)
	}
	return jobs, most, sum
}

// String says how many jobs were preempted how often.
func (c count) String() string {
	var parts []string
	for _, n := range slices.Sorted(maps.Keys(c.jobs)) {
		parts = append(parts, fmt.Sprintf("%d×%d", c.jobs[n], n))
	}
	return strings.Join(parts, ", ")
}
