// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestNobodyWaitsLessThanOnAQuietMachineNorForEver(t *testing.T) {
	if got := For(time.Second); got < time.Second || got > most*time.Second {
		t.Errorf("a second is %s", got)
	}
	if load := loadavg(); load < 0 || crowd(8, 2) != 4 || parse("1.50 1.0 0.5 1/200 77\n") != 1.5 || parse("") != 0 {
		t.Errorf("the load is %v", load)
	}
}

func TestTheSpeedIsMeasured(t *testing.T) {
	if slowness() <= 0 {
		t.Errorf("this machine is %v times slower", slowness())
	}
	t.Logf("this machine is %.2f times slower, its load is %.1f", slowness(), loadavg())
}

func TestAPollEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, broken := 0, errors.New("broken")
		if err := Poll(t.Context(), time.Second, func(context.Context) (bool, error) { asked++; return asked == 3, nil }); err != nil || asked != 3 {
			t.Errorf("asked %d times, error %v", asked, err)
		}
		if err := Poll(t.Context(), time.Second, func(context.Context) (bool, error) { return false, broken }); !errors.Is(err, broken) {
			t.Errorf("the error is %v", err)
		}
		asked = 0
		Await(t, "it is there", func(context.Context) error {
			if asked++; asked < 3 {
				return broken
			}
			return nil
		})
		begin := time.Now()
		if err := Poll(t.Context(), time.Second, func(context.Context) (bool, error) { return false, nil }); !wait.Interrupted(err) || !strings.HasPrefix(err.Error(), "timed out after ") {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(begin); took < Limit || took > most*Limit {
			t.Errorf("it ended after %s", took)
		}
		ctx, cancel := Context(t.Context())
		defer cancel()
		if end, has := ctx.Deadline(); !has || time.Until(end) < Limit {
			t.Errorf("the context ends at %s", end)
		}
	})
}

// A machine that becomes busy while a test waits gives it the time of a busy machine.
func TestAWaitIsAsLongAsTheMachineIsBusyAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []time.Duration{time.Minute, 3 * time.Minute, 2 * time.Minute}
		limit := func() (now time.Duration) {
			now, limits = limits[0], limits[min(1, len(limits)-1):]
			return now
		}
		begin := time.Now()
		err := pollFor(t.Context(), time.Second, limit, func(context.Context) (bool, error) { return false, nil })
		if took := time.Since(begin); err == nil || took.Round(time.Second) != 3*time.Minute || !strings.HasPrefix(err.Error(), "timed out after 3m") {
			t.Errorf("it ended after %s: %v", took, err)
		}
	})
}

func BenchmarkWork(b *testing.B) {
	for b.Loop() {
		work()
	}
}
