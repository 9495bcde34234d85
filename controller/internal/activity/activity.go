// SPDX-License-Identifier: Apache-2.0

// Package activity answers one question: do devices of an AppWrapper compute, says the query of the administrator?
// It asks Prometheus in the background, so that nobody waits for it, and not often. It decides nothing.
package activity

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

const (
	// atOnce is how many queries run at the same time. The others wait, no longer than an answer may take.
	atOnce = 4
	// stillCounts is for how long it counts that devices computed, while there is no answer: Prometheus restarts
	// within minutes. A job that was held back must not be reset because of that.
	stillCounts = 5 * time.Minute
	// remembered is for how long anything is known of an AppWrapper about which nobody asks any more.
	remembered = 10 * time.Minute
)

// Signs are what Prometheus says about AppWrappers.
type Signs struct {
	ask     func(ctx context.Context, namespace string, pods []string) (lifecycle.Activity, error)
	timeout time.Duration
	now     func() time.Time
	slots   chan struct{}

	lock sync.Mutex
	of   map[types.UID]*sign
}

// sign is the latest question about an AppWrapper.
type sign struct {
	asked   time.Time
	started bool
	// says is the answer; empty if there is none yet.
	says lifecycle.Activity
	// computed is when the devices last did, by this answer or one before.
	computed time.Time
}

// Of are the signs that the configuration asks for; nil if it asks for none.
func Of(c config.DeviceActivity) (func(context.Context, types.UID, string, []string) lifecycle.Activity, error) {
	if c.PrometheusURL == "" {
		return nil, nil
	}
	p, err := newPrometheus(c)
	if err != nil {
		return nil, err
	}
	return newSigns(p.ask, c.Timeout.Duration, time.Now).Activity, nil
}

func newSigns(ask func(context.Context, string, []string) (lifecycle.Activity, error), timeout time.Duration, now func() time.Time) *Signs {
	return &Signs{ask: ask, timeout: timeout, now: now, slots: make(chan struct{}, atOnce), of: map[types.UID]*sign{}}
}

// Activity is what is known about these running pods of an AppWrapper. It never waits: without an answer it is
// Awaited, until the timeout is over. An answer counts until it is time to ask again.
func (s *Signs) Activity(ctx context.Context, aw types.UID, namespace string, pods []string) lifecycle.Activity {
	if len(pods) == 0 {
		return lifecycle.ActivityUnknown
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	now := s.now()
	latest := s.latest(aw, now)
	patient := now.Before(latest.asked.Add(s.timeout))
	if latest.says == "" && patient {
		s.start(ctx, latest, namespace, pods)
		return lifecycle.ActivityAwaited
	}
	if (latest.says == "" || latest.says == lifecycle.ActivityUnknown) && now.Before(latest.computed.Add(stillCounts)) {
		return lifecycle.ActivityComputes
	}
	if latest.says == "" {
		return lifecycle.ActivityUnknown
	}
	return latest.says
}

// latest is the question that counts, which may be a new one.
func (s *Signs) latest(aw types.UID, now time.Time) *sign {
	before := s.of[aw]
	if before != nil && now.Before(before.asked.Add(lifecycle.AskAgain)) {
		return before
	}
	for other, old := range s.of {
		if now.After(old.asked.Add(remembered)) {
			delete(s.of, other)
		}
	}
	next := &sign{asked: now}
	if before != nil {
		next.computed = before.computed
	}
	s.of[aw] = next
	return next
}

// start asks in the background, if not too many do.
func (s *Signs) start(ctx context.Context, question *sign, namespace string, pods []string) {
	if question.started {
		return
	}
	select {
	case s.slots <- struct{}{}:
		question.started = true
		go s.answer(context.WithoutCancel(ctx), question, namespace, pods)
	default:
	}
}

func (s *Signs) answer(ctx context.Context, question *sign, namespace string, pods []string) {
	defer func() { <-s.slots }()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	says, err := s.ask(limited, namespace, pods)
	if err != nil {
		log.FromContext(ctx).Error(err, "whether devices compute is unknown")
		says = lifecycle.ActivityUnknown
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	question.says = says
	if says == lifecycle.ActivityComputes {
		question.computed = s.now()
	}
}
