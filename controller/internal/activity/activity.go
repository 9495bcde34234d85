// SPDX-License-Identifier: Apache-2.0

// Package activity answers one question: do devices of an AppWrapper compute, says the query of the administrator?
// It asks Prometheus in the background, so that nobody waits for it, and not often. It decides nothing.
package activity

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

const (
	// atOnce is how many queries run at the same time. The others wait, no longer than an answer may take.
	atOnce = 4
	// stillCounts is for how long it counts that devices computed, while there is no answer: Prometheus restarts
	// within minutes. A job that was held back must not be reset because of that.
	stillCounts = 5 * time.Minute
	// tried is how often the server is asked about nobody, so that one that does not answer is known before work hangs.
	tried = 5 * time.Minute
	// remembered is for how long anything is known of an AppWrapper about which nobody asks any more.
	remembered = 10 * time.Minute
)

// Signs are what Prometheus says about AppWrappers.
type Signs struct {
	ask     func(ctx context.Context, namespace string, pods []string) (lifecycle.Activity, error)
	timeout time.Duration
	now     func() time.Time
	slots   chan struct{}
	// answered is 1 if there was an answer to the latest question, else 0.
	answered *prometheus.GaugeVec

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

// Setup makes the signs that the configuration asks for; nil if it asks for none.
func Setup(mgr manager.Manager, c config.DeviceActivity) (func(context.Context, types.UID, string, []string) lifecycle.Activity, error) {
	signs, err := of(c)
	if signs == nil || err != nil {
		return nil, err
	}
	if err := metrics.Registry.Register(signs.answered); err != nil {
		return nil, fmt.Errorf("cannot register a metric: %w", err)
	}
	return signs.Activity, mgr.Add(signs)
}

func of(c config.DeviceActivity) (*Signs, error) {
	if c.PrometheusURL == "" {
		return nil, nil
	}
	p, err := newPrometheus(c)
	if err != nil {
		return nil, err
	}
	return newSigns(p.ask, c.Timeout.Duration, time.Now), nil
}

func newSigns(ask func(context.Context, string, []string) (lifecycle.Activity, error), timeout time.Duration, now func() time.Time) *Signs {
	return &Signs{ask: ask, timeout: timeout, now: now, slots: make(chan struct{}, atOnce), answered: newAnswered(), of: map[types.UID]*sign{}}
}

// nobody is a namespace and a pod that need not exist.
const nobody = "nobody"

// Start implements manager.Runnable, for the leader.
func (s *Signs) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		s.hear(ctx, nobody, []string{nobody})
		select {
		case <-ctx.Done():
		case <-time.After(tried):
		}
	}
	return nil
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
	says := s.hear(ctx, namespace, pods)
	s.lock.Lock()
	defer s.lock.Unlock()
	question.says = says
	if says == lifecycle.ActivityComputes {
		question.computed = s.now()
	}
}

// hear waits for an answer, not for long, and shows whether there is one.
func (s *Signs) hear(ctx context.Context, namespace string, pods []string) lifecycle.Activity {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	says, err := s.ask(limited, namespace, pods)
	if err != nil {
		log.FromContext(ctx).Error(err, "whether devices compute is unknown")
		s.answered.WithLabelValues().Set(0)
		return lifecycle.ActivityUnknown
	}
	s.answered.WithLabelValues().Set(1)
	return says
}
