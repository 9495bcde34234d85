// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

const timeout = 5 * time.Second

// server is what answers in these tests, after a while.
type server struct {
	sync.Mutex
	says  lifecycle.Activity
	fails error
	takes time.Duration
	asked atomic.Int32
	atOne atomic.Int32
	most  atomic.Int32
}

func (s *server) ask(ctx context.Context, _ string, _ []string) (lifecycle.Activity, error) {
	s.asked.Add(1)
	s.most.Store(max(s.most.Load(), s.atOne.Add(1)))
	defer s.atOne.Add(-1)
	select {
	case <-time.After(s.takes):
		s.Lock()
		defer s.Unlock()
		return s.says, s.fails
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// failWith is what the server says from now on instead of an answer.
func (s *server) failWith(err error) {
	s.Lock()
	defer s.Unlock()
	s.fails = err
}

// hear asks about an AppWrapper, as its reconciler does, until there is an answer.
func hear(t *testing.T, signs *Signs, aw types.UID) (lifecycle.Activity, time.Duration) {
	t.Helper()
	began := time.Now()
	says := signs.Activity(t.Context(), aw, "team", []string{"a"})
	for says == lifecycle.ActivityAwaited && time.Since(began) <= timeout {
		time.Sleep(time.Second)
		synctest.Wait()
		says = signs.Activity(t.Context(), aw, "team", []string{"a"})
	}
	return says, time.Since(began)
}

// expect is expected of the next answer.
func expect(t *testing.T, signs *Signs, s *server, want lifecycle.Activity, asked int32) {
	t.Helper()
	says, waited := hear(t, signs, "x")
	if says != want || s.asked.Load() != asked {
		t.Errorf("it says %q after %d queries, want %q after %d", says, s.asked.Load(), want, asked)
	}
	if waited > timeout {
		t.Errorf("the answer takes %s", waited)
	}
}

func inTime(t *testing.T, s *server, check func(*testing.T, *Signs)) {
	synctest.Test(t, func(t *testing.T) { check(t, newSigns(s.ask, timeout, time.Now)) })
}

func TestAnAnswerCountsUntilItIsTimeToAskAgain(t *testing.T) {
	s := &server{says: lifecycle.ActivityComputes}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		if says := signs.Activity(t.Context(), "x", "team", []string{"a"}); says != lifecycle.ActivityAwaited {
			t.Errorf("it says %q before there is an answer", says)
		}
		for range 20 {
			expect(t, signs, s, lifecycle.ActivityComputes, 1)
			time.Sleep(time.Second)
		}
		s.says = lifecycle.ActivityRests
		time.Sleep(10 * time.Second)
		expect(t, signs, s, lifecycle.ActivityRests, 2)
	})
}

func TestASlowAnswerIsNotAwaitedForLong(t *testing.T) {
	s := &server{says: lifecycle.ActivityRests, takes: time.Hour}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		expect(t, signs, s, lifecycle.ActivityUnknown, 1)
		time.Sleep(20 * time.Second)
		expect(t, signs, s, lifecycle.ActivityUnknown, 1)
		time.Sleep(10 * time.Second)
		expect(t, signs, s, lifecycle.ActivityUnknown, 2)
	})
}

// Prometheus is updated while a job is held back.
func TestWhoeverComputedIsStillHeldBackWhilePrometheusRestarts(t *testing.T) {
	s := &server{says: lifecycle.ActivityComputes}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		expect(t, signs, s, lifecycle.ActivityComputes, 1)
		s.fails = errors.New("connection refused")
		for n := range int32(8) {
			time.Sleep(30 * time.Second)
			expect(t, signs, s, lifecycle.ActivityComputes, n+2)
		}
		time.Sleep(time.Minute)
		expect(t, signs, s, lifecycle.ActivityUnknown, 10)
	})
}

func TestAnAnswerThatItRestsIsBelievedAtOnce(t *testing.T) {
	s := &server{says: lifecycle.ActivityComputes}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		expect(t, signs, s, lifecycle.ActivityComputes, 1)
		s.says = lifecycle.ActivityRests
		time.Sleep(30 * time.Second)
		expect(t, signs, s, lifecycle.ActivityRests, 2)
	})
}

// A whole cluster hangs, and Prometheus is slow: nobody waits longer than one answer may take.
func TestFewQueriesRunAtTheSameTime(t *testing.T) {
	s := &server{says: lifecycle.ActivityRests, takes: time.Hour}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		names := make([]types.UID, 1000)
		for i := range names {
			names[i] = types.UID(string(rune('A' + i)))
			signs.Activity(t.Context(), names[i], "team", []string{"a"})
		}
		time.Sleep(timeout)
		synctest.Wait()
		for _, aw := range names {
			if says := signs.Activity(t.Context(), aw, "team", []string{"a"}); says != lifecycle.ActivityUnknown {
				t.Fatalf("after the timeout it says %q of %s", says, aw)
			}
		}
		if s.most.Load() != atOnce || s.asked.Load() != atOnce {
			t.Errorf("%d queries ran, up to %d at the same time", s.asked.Load(), s.most.Load())
		}
	})
}

func TestWhatNobodyAsksAboutIsForgotten(t *testing.T) {
	s := &server{says: lifecycle.ActivityRests}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		hear(t, signs, "x")
		time.Sleep(time.Hour)
		hear(t, signs, "y")
		if len(signs.of) != 1 {
			t.Errorf("%d AppWrappers are remembered", len(signs.of))
		}
	})
}

// A wrong token, or none any more, is seen before work hangs.
func TestWhetherThereAreAnswersIsKnownBeforeAnybodyAsks(t *testing.T) {
	s := &server{says: lifecycle.ActivityUnknown, takes: time.Second}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		expectAnswered(t, signs, "")
		go func() { _ = signs.Start(t.Context()) }()
		time.Sleep(2 * time.Second)
		expectAnswered(t, signs, "1")
		s.failWith(errors.New("401 Unauthorized"))
		time.Sleep(tried)
		expectAnswered(t, signs, "0")
		s.failWith(nil)
		hear(t, signs, "x")
		expectAnswered(t, signs, "1")
	})
}

func expectAnswered(t *testing.T, signs *Signs, want string) {
	t.Helper()
	synctest.Wait()
	registry := prometheus.NewRegistry()
	registry.MustRegister(signs.answered)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, family := range families {
		got = strconv.Itoa(int(family.GetMetric()[0].GetGauge().GetValue()))
	}
	if got != want {
		t.Errorf("the metric is %q, want %q", got, want)
	}
}

func TestWithoutRunningPodsNobodyIsAsked(t *testing.T) {
	s := &server{says: lifecycle.ActivityComputes}
	inTime(t, s, func(t *testing.T, signs *Signs) {
		if says := signs.Activity(t.Context(), "x", "team", nil); says != lifecycle.ActivityUnknown || s.asked.Load() > 0 {
			t.Errorf("it says %q after %d queries", says, s.asked.Load())
		}
	})
}

func TestTheGuideHasTheFigures(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fault-tolerance.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.Join(strings.Fields(string(text)), " ")
	for figure, is := range map[string]bool{
		"twice a minute at most":                              time.Minute/lifecycle.AskAgain == 2,
		"No more than four run at the same time":              atOnce == 4,
		"Devices that have computed count for 5 minutes more": stillCounts == 5*time.Minute,
	} {
		if !is || !strings.Contains(guide, figure) {
			t.Errorf("docs/fault-tolerance.md does not say %q, or it is wrong", figure)
		}
	}
}
