// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// If a clock is set back or forward, or differs between machines, a timer takes at most twice
// its length.
func TestAClockThatJumpsLosesNoTimer(t *testing.T) {
	const jump = 10 * time.Hour
	starting := func() lifecycle.Snapshot {
		s := runningJob()
		withPods(pending, pending)(&s)
		return s
	}
	decide := func(s lifecycle.Snapshot, at time.Time) lifecycle.Decision { return lifecycle.Decide(s, at) }
	warmup := lifecycle.StandardDefaults().WarmupGrace

	s := starting()
	back := deployedAt.Add(-jump)
	d := decide(s, back)
	if d.Requeue <= 0 || d.Requeue > warmup {
		t.Errorf("after the clock was set back, it requeues in %s, want at most %s", d.Requeue, warmup)
	}
	for _, c := range d.Status.Conditions {
		if c.LastTransitionTime.After(back) {
			t.Errorf("%s has changed at %s, and it is %s", c.Type, c.LastTransitionTime, back)
		}
	}
	s.Status = d.Status
	if d = decide(s, back.Add(warmup)); d.Status.Phase != v1beta2.AppWrapperResetting {
		t.Errorf("the warmup grace period is over, but the phase is %s", d.Status.Phase)
	}

	s = starting()
	if d = decide(s, deployedAt.Add(jump)); d.Status.Phase != v1beta2.AppWrapperResetting || d.Requeue < 0 {
		t.Errorf("after the clock was set forward, it is %s and requeues in %s", d.Status.Phase, d.Requeue)
	}

	s = starting()
	if d = decide(s, deployedAt.Add(-time.Second)); d.Requeue != warmup+time.Second {
		t.Errorf("with clocks a second apart, it requeues in %s", d.Requeue)
	}
}
