// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"

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
