// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package turns_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
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
		ManagerConfig struct{ ControllerManagerConfigYaml string }
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
	lost        time.Duration
	waits       time.Time // until then
}

// workloads are the lives of all Workloads.
type workloads struct {
	mu    sync.Mutex
	lives map[string]*life
}

func watchWorkloads(t *testing.T, admin client.WithWatch) *workloads {
	t.Helper()
	w := &workloads{lives: map[string]*life{}}
	watch, err := admin.Watch(t.Context(), &kueue.WorkloadList{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range watch.ResultChan() {
			if seen, ok := event.Object.(*kueue.Workload); ok {
				w.hear(seen)
			}
		}
	}()
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
			l.lost += l.last.Sub(l.admitted) * time.Duration(l.gpus)
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
	jobs      int
	most, sum int32
	lost      time.Duration
	last      time.Time
}

func (w *workloads) count(plays []play, p play) (c count) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lives {
		if of, ok := of(plays, l.namespace); !ok || of.name("") != p.name("") {
			continue
		}
		c.jobs++
		c.sum += l.preemptions
		c.most = max(c.most, l.preemptions)
		c.lost += l.lost
		if l.last.After(c.last) {
			c.last = l.last
		}
	}
	return c
}
