// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

// Every save would be refused, and what was read for it would be read in vain.
func TestAnAppWrapperFromBeforeOurOwnWriteIsNotLookedAt(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	var before *v1beta2.AppWrapper
	w.noted = func() { before = w.get() }
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.noted, w.writes = nil, nil
	w.reconciler.cached = frozen{w.api, before} // in Resuming
	if result := w.reconcile(); result.RequeueAfter != longestEcho || len(w.writes)+len(w.liveReads) > 0 {
		t.Errorf("it looks again after %s; writes %q, live reads %q", result.RequeueAfter, w.writes, w.liveReads)
	}
	w.reconciler.cached = w.api
	if w.reconcile(); len(w.reconciler.echoes.pending) > 0 {
		t.Error("an echo that has come is still awaited")
	}
}

// After a restore of the API server, versions are lower than before.
func TestAnEchoIsNotAwaitedForLong(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	var before *v1beta2.AppWrapper
	w.noted = func() { before = w.get() }
	w.reconcile()
	w.reconciler.cached, w.now = frozen{w.api, before}, w.now.Add(longestEcho)
	if w.reconcile(); len(w.liveReads) == 0 {
		t.Error("it was not looked at")
	}
}

func TestNothingIsRememberedOfAnAppWrapperThatIsGone(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	w.reconcile()
	w.delete()
	w.settle()
	if w.reconcile(); len(w.reconciler.echoes.pending) > 0 {
		t.Errorf("it remembers %v", w.reconciler.echoes.pending)
	}
}

// history is what has happened to an AppWrapper: the versions that the API server has, that the
// cache has, and that our last write has made.
type history struct {
	echoes               echoes
	stored, cached, ours uint64
}

var happenings = []struct {
	name   string
	happen func(*history)
}{
	{"we write", func(h *history) {
		h.stored++
		h.ours = h.stored
		h.echoes.expect(inVersion(h.ours), time.Time{})
	}},
	{"another writes, or makes it anew", func(h *history) { h.stored++ }},
	{"the cache hears of one change", func(h *history) { h.cached = min(h.cached+1, h.stored) }},
	{"the cache hears of the last change only", func(h *history) { h.cached = h.stored }},
	{"another process takes over", func(h *history) { h.echoes, h.ours = echoes{}, 0 }},
}

// A wake-up that is lost is never made up for. So whatever happens in whatever order, a look is put
// off while our last write is on its way to the cache, which wakes us again, and never else.
func TestALookIsPutOffOnlyWhileOurOwnWriteIsOnItsWay(t *testing.T) {
	histories := [][]int{nil}
	for range 6 {
		var longer [][]int
		for _, before := range histories {
			for i := range happenings {
				longer = append(longer, append(slices.Clone(before), i))
			}
		}
		histories = longer
	}
	for _, story := range histories {
		h, told := &history{stored: 1, cached: 1}, []string(nil)
		for _, i := range story {
			happenings[i].happen(h)
			told = append(told, happenings[i].name)
			putOff := h.echoes.await(inVersion(h.cached), time.Time{}) > 0
			if putOff != (h.cached < h.ours) || putOff && h.cached == h.stored {
				t.Fatalf("put off: %t, though the cache has version %d of %d and our last was %d: %q", putOff, h.cached, h.stored, h.ours, told)
			}
		}
	}
}

func inVersion(version uint64) *v1beta2.AppWrapper {
	return &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: strconv.FormatUint(version, 10)}}
}

// Kueue takes the quota back just after one of our writes, and the cache has both at once.
func TestAChangeRightAfterOurOwnWriteIsLookedAt(t *testing.T) {
	for n := range 6 {
		w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
		suspend := func() { w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true }) }
		w.noted = func() {
			if len(w.writes) == n {
				suspend()
			}
		}
		w.reconcile()
		w.noted = nil
		if !w.get().Spec.Suspend {
			suspend() // after the last write
		}
		for range 5 {
			if result := w.reconcile(); result.RequeueAfter == longestEcho {
				t.Errorf("after write %d of %q it is put off", n, w.writes)
			}
		}
		w.expectPhase(v1beta2.AppWrapperSuspended)
		if w.exists(jobKind, "j") {
			t.Errorf("after write %d of %q the Job is still there", n, w.writes)
		}
	}
}
