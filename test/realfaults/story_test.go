// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
)

// fault is one story: work runs on the real node, something breaks, and this follows.
type fault struct {
	sentence string
	work     work
	// order is what a pod does then.
	order string
	// inject breaks something else. It mends it when its test has ended.
	inject func(*room)
	// early: it is injected before the work is there, which then never runs before it is found.
	early bool
	// help lets the next attempt run, which is what this fault is not about.
	help func(*work)
	// cause is in the condition Unhealthy.
	cause               string
	migrations, retries int32
	// ended is how the kubelet says that a pod ended, if it did by itself.
	ended string
	// fails: the work is not tried again.
	fails bool
	// loses is the class of the books for what the first attempt did; empty if it did nothing.
	loses ledger.Class
}

func TestFaultsOnTheRealNode(t *testing.T) {
	r := newRoom(t)
	crowd := r.gather()
	for _, f := range ofNodes {
		t.Run(f.sentence, func(t *testing.T) { f.happens(r.in(t), func() {}) })
		crowd.isUntouched(f.sentence)
	}
	t.Run("the kubelet is silent for a while", func(t *testing.T) { kubeletIsSilent(r.in(t)) })
	crowd.isUntouched("the kubelet is silent for a while")
	t.Run("all at once", func(t *testing.T) { allAtOnce(t, r) })
	crowd.isUntouched("all at once")
	r.balance()
}

// allAtOnce injects all faults of programs at the same moment, and one of the node, while the controller is killed
// and another team takes its quota back.
func allAtOnce(t *testing.T, r *room) {
	var missing sync.WaitGroup
	together := func(name string, story func(r *room, meet func())) {
		missing.Add(1)
		arrive := sync.OnceFunc(missing.Done)
		t.Run(name, func(t *testing.T) {
			t.Cleanup(arrive)
			t.Parallel()
			story(r.in(t), func() { arrive(); missing.Wait() })
		})
	}
	for _, f := range append(ofPrograms, labelled) {
		together(f.sentence, func(r *room, meet func()) { f.happens(r, meet) })
	}
	together("quota is taken back", quotaIsTakenBack)
	together("the controller is killed", controllerIsKilled)
}

// happens tells the story.
func (f fault) happens(r *room, meet func()) {
	r.Helper()
	w := f.work
	w.room, w.name = r, nameOf(f.sentence)
	begin, before := f.begins(&w, meet)
	found := w.await("is reset", begin, in(workload.AppWrapperResetting, workload.AppWrapperFailed))
	if got := why(found.aw); !strings.Contains(got, f.cause) {
		r.Errorf("it says %q, want %q", got, f.cause)
	}
	if got := r.lives.ended(w.name); f.ended != "" && !slices.Contains(got, f.ended) {
		r.Errorf("its pods ended with %q, want %q", got, f.ended)
	}
	if f.fails {
		w.balances(w.await("has failed", begin, in(workload.AppWrapperFailed)), f.loses)
		r.Logf("found after %.1f s: %s", found.at.Sub(begin).Seconds(), why(found.aw))
		return
	}
	w.takeYourTime()
	if f.help != nil {
		f.help(&w)
	}
	again := w.await("runs again", found.at, running)
	r.Logf("found after %.1f s: %s; runs again after %.1f s", found.at.Sub(begin).Seconds(), why(found.aw), again.at.Sub(begin).Seconds())
	if s := again.aw.Status; s.Migrations != f.migrations || s.Retries != f.retries {
		r.Errorf("there were %d migrations and %d retries, want %d and %d", s.Migrations, s.Retries, f.migrations, f.retries)
	}
	f.runsAnew(&w, before)
	w.balances(again, f.loses)
}

// begins waits until the work runs, and breaks it.
func (f fault) begins(w *work, meet func()) (begin time.Time, before []corev1.Pod) {
	w.Helper()
	if f.early {
		meet()
		begin = time.Now()
		if f.inject != nil {
			f.inject(w.room)
		}
		w.submit()
		return begin, nil
	}
	w.submit()
	w.await("runs", time.Time{}, running)
	before = w.itsPods()
	for _, pod := range before {
		if pod.Spec.NodeName != name {
			w.Fatalf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	workABit()
	meet()
	begin = time.Now()
	if f.order != "" {
		w.order(before[0], f.order)
	}
	if f.inject != nil {
		f.inject(w.room)
	}
	return begin, before
}

// runsAnew: all pods are new, and where they should be.
func (f fault) runsAnew(w *work, before []corev1.Pod) {
	w.Helper()
	pods := w.itsPods()
	if len(pods) != int(max(w.pods, 1)) {
		w.Errorf("it has %d pods", len(pods))
	}
	for _, pod := range pods {
		if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == pod.UID }) {
			w.Errorf("pod %s is of the attempt before", pod.Name)
		}
		if there := pod.Spec.NodeName == name; there == (f.migrations > 0) {
			w.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
}

// nameOf makes a name of a sentence.
func nameOf(sentence string) string { return strings.ReplaceAll(strings.ToLower(sentence), " ", "-") }

// workABit lets work do something that it can lose: the books have whole seconds.
func workABit() { time.Sleep(time.Second) }
