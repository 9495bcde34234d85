// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/stories"
)

// A history is an AppWrapper as the API server had it, from its creation to its end.
type history struct {
	title  string
	points []point
}

// A point of a history is what was stored, and what was true then, which no condition says.
type point struct {
	stored           v1beta2.AppWrapper
	kueue            quotareason.Word
	gone             bool
	pending, running int // pods that the AppWrapper has made
}

// recordHistory returns a world in which a life can happen, and what was stored meanwhile.
func recordHistory(t *testing.T, title string, policy lifecycle.Policy, resources ...*resource) (*world, *history) {
	t.Helper()
	w, h := newWorld(policy, resources...), &history{title: title}
	w.broken = func(promise string) { t.Errorf("%s: broken: %s", title, promise) }
	was := -1
	record := func() {
		if w.resourceVersion == was && (len(h.points) == 0 || h.points[len(h.points)-1].gone == w.gone) {
			return
		}
		was = w.resourceVersion
		h.points = append(h.points, w.point())
	}
	w.notes = func(string, string) { record() }
	w.crash = func() bool { record(); return false }
	record()
	return w, h
}

func (w *world) point() point {
	p := point{kueue: w.kueue, gone: w.gone}
	p.stored.Spec.Suspend = w.suspend
	p.stored.Status = *w.status.DeepCopy()
	if w.deleting {
		p.stored.DeletionTimestamp = &metav1.Time{Time: w.deletedAt}
	}
	for _, pod := range w.pods {
		switch {
		case pod.foreign, pod.stray:
		case pod.Phase == corev1.PodPending:
			p.pending++
		case pod.Phase == corev1.PodRunning:
			p.running++
		}
	}
	return p
}

// historiesOfStories are those of all stories.
func historiesOfStories(t *testing.T) []*history {
	t.Helper()
	var all []*history
	for _, story := range stories.All() {
		defaults := lifecycle.StandardDefaults()
		defaults.MigrationLimit = story.MigrationLimit
		policy, problems := lifecycle.ParsePolicy(story.Annotations, defaults)
		if len(problems) > 0 {
			t.Fatalf("a story has invalid annotations: %v", problems)
		}
		w, h := recordHistory(t, story.Name, policy, resourcesOf(story.Components)...)
		if story.AtOnce {
			w.atOnce()
		}
		w.settle()
		story.Live(w)
		w.notes("", "")
		all = append(all, h)
	}
	return all
}

// A namedLife has what a program must conclude of it, in this order, if it misses nothing.
type namedLife struct {
	title string
	want  []string
	lives func(*world)
}

var namedLives = []namedLife{
	{"success", []string{"Waits", "Starts", "Runs", "Succeeded"}, succeeds},
	{"preemption", []string{"Waits", "Starts", "Runs", "WaitsAgain Preempted", "Starts", "Runs", "Succeeded"}, func(w *world) {
		w.Evict()
		w.Settle()
		w.Pass(time.Hour)
		w.Admit()
		w.Settle()
		w.StartPods()
		w.Settle()
		succeeds(w)
	}},
	{"node loss", []string{"Waits", "Starts", "Runs", "TriesAgain NodeUnhealthy", "Starts", "Runs", "Succeeded"}, func(w *world) {
		w.LoseNode(0)
		w.MarkNodeNotReady(0)
		w.Settle()
		w.Pass(time.Minute)
		w.ReturnNode(0)
		w.Settle()
		w.Pass(2 * time.Minute)
		w.StartPods()
		w.Settle()
		succeeds(w)
	}},
	{"crash", []string{"Waits", "Starts", "Runs", "TriesAgain ComponentFailed", "Starts", "Runs", "Failed ComponentFailed"}, func(w *world) {
		crashes(w)
		w.Pass(2 * time.Minute)
		w.StartPods()
		w.Settle()
		crashes(w)
	}},
	{"hold", []string{"Waits", "Starts", "Runs", "Failed ComponentFailed"}, func(w *world) {
		w.policy.RetryLimit, w.policy.DeletionOnFailureHold = 0, time.Hour
		crashes(w)
		w.Pass(2 * time.Hour)
	}},
	{"deactivation", []string{
		"Waits", "Starts", "Runs", "Deactivated MaximumExecutionTimeExceeded", "WaitsAgain Reactivated", "Starts", "Runs", "Succeeded",
	}, func(w *world) {
		const tooLong = "DeactivatedDueToMaximumExecutionTimeExceeded"
		w.Evict()
		w.says(quotareason.Word{Evicted: tooLong, Deactivated: tooLong})
		w.Pass(time.Hour)
		w.says(quotareason.Word{Evicted: tooLong})
		w.Admit()
		w.Settle()
		w.StartPods()
		w.Settle()
		succeeds(w)
	}},
}

func succeeds(w *world) {
	w.EndPods(0, corev1.PodSucceeded)
	w.Report(0, true)
	w.Settle()
}

func crashes(w *world) {
	w.EndPods(0, corev1.PodFailed, 1)
	w.Report(0, false)
	w.Settle()
}

// historiesOfNamedLives are in the order of namedLives.
func historiesOfNamedLives(t *testing.T) []*history {
	t.Helper()
	var all []*history
	for _, life := range namedLives {
		policy := standardPolicy()
		policy.RetryLimit = 1
		w, h := recordHistory(t, life.title, policy, job("train", 2))
		w.Settle()
		w.Admit()
		w.Settle()
		w.StartPods()
		w.Settle()
		life.lives(w)
		w.notes("", "")
		all = append(all, h)
	}
	return all
}

// outcome is how the AppWrapper ended, by its phases, and "" if it did not.
func (h *history) outcome() string {
	ended := ""
	for _, p := range h.points {
		switch phase := p.stored.Status.Phase; phase {
		case v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed:
			ended = string(phase)
		case v1beta2.AppWrapperTerminating:
		default:
			ended = "" // it goes on
		}
	}
	return ended
}

// contradiction says why a conclusion is not true at a point of a history, or "".
func (h *history) contradiction(at int, is string) string {
	p := h.points[at]
	phase, suspended := p.stored.Status.Phase, p.stored.Spec.Suspend
	ended := (&history{points: h.points[:at+1]}).outcome()
	isTrue := map[string]bool{
		"Succeeded":    ended == is,
		"Failed":       ended == is,
		"Deleted":      p.gone,
		"BeingDeleted": p.stored.DeletionTimestamp != nil && !p.gone,
		"Deactivated":  p.kueue.Deactivated != "",
		"WaitsAgain":   (suspended || phase == v1beta2.AppWrapperSuspending || p.running+p.pending == 0) && p.kueue.Deactivated == "",
		"Waits":        p.running == 0 && p.pending == 0,
		"Starts":       phase == v1beta2.AppWrapperResuming || phase == v1beta2.AppWrapperRunning,
		"Runs":         phase == v1beta2.AppWrapperRunning,
		"TriesAgain":   phase == v1beta2.AppWrapperResetting,
	}[is]
	if isTrue {
		return ""
	}
	return fmt.Sprintf("%s: it is %s, suspended %t, deleting %t, gone %t, %d pods wait and %d run, Kueue says %+v: this is not %q",
		h.title, phase, suspended, p.stored.DeletionTimestamp != nil, p.gone, p.pending, p.running, p.kueue, is)
}
