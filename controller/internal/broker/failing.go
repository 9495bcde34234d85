// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
)

// failing remembers for which tasks the store fails. It forgets a task when the store has done what it was asked for,
// or when nobody asks any more.
type failing struct {
	mu    sync.Mutex
	tasks map[string]spell
}

// spell is from the first failure to the latest.
type spell struct{ first, latest time.Time }

// forgotten is how long after the latest failure another is the first of a new spell. Workers ask every few seconds.
const forgotten = time.Minute

// note adds what has become of a request. A full disk is no failure for one task: every task waits for it.
func (f *failing) note(task string, err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		delete(f.tasks, task)
		return
	}
	for other, s := range f.tasks {
		if now.Sub(s.latest) > forgotten {
			delete(f.tasks, other)
		}
	}
	s, known := f.tasks[task]
	if !known {
		s.first = now
	}
	s.latest = now
	f.tasks[task] = s
}

// lasts is for how long the store has been failing.
func (f *failing) lasts(task string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, known := f.tasks[task]
	if !known || now.Sub(s.latest) > forgotten {
		return 0
	}
	return now.Sub(s.first)
}

// hopeless tells whether the store fails for one task only, and for so long that its worker must not wait any
// longer. While the store does not answer at all, every task waits.
func (b *Broker) hopeless(ctx context.Context, task string) bool {
	if b.failing.lasts(task, time.Now()) <= b.patience {
		return false
	}
	_, away := b.store.Epoch(ctx)
	return away == nil
}
