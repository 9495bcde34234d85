// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/echoes"
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
	if result := w.reconcile(); result.RequeueAfter != echoes.Longest || len(w.writes)+len(w.liveReads) > 0 {
		t.Errorf("it looks again after %s; writes %q, live reads %q", result.RequeueAfter, w.writes, w.liveReads)
	}
	w.reconciler.cached = w.api
	w.reconcile()
	if w.reconciler.echoes.Await(before, w.now) > 0 {
		t.Error("an echo that has come is still awaited")
	}
}

// After a restore of the API server, versions are lower than before.
func TestAnEchoIsNotAwaitedForLong(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	var before *v1beta2.AppWrapper
	w.noted = func() { before = w.get() }
	w.reconcile()
	w.reconciler.cached, w.now = frozen{w.api, before}, w.now.Add(echoes.Longest)
	if w.reconcile(); len(w.liveReads) == 0 {
		t.Error("it was not looked at")
	}
}

func TestNothingIsRememberedOfAnAppWrapperThatIsGone(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	before := w.get()
	w.reconcile()
	w.delete()
	w.settle()
	w.reconcile()
	if w.reconciler.echoes.Await(before, w.now) > 0 {
		t.Error("it remembers what was written to it")
	}
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
			if result := w.reconcile(); result.RequeueAfter == echoes.Longest {
				t.Errorf("after write %d of %q it is put off", n, w.writes)
			}
		}
		w.expectPhase(v1beta2.AppWrapperSuspended)
		if w.exists(jobKind, "j") {
			t.Errorf("after write %d of %q the Job is still there", n, w.writes)
		}
	}
}
