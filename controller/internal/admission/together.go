// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"sync"
	"time"
)

// readingFor is longer than the API server waits for an answer of a webhook.
const readingFor = 30 * time.Second

// together lets requests that come while a namespace is read share the next reading of it: many jobs often come at
// once. Each gets what was read after it came, so no answer is older than without this.
//
//	requests  a    b  c         d
//	readings  [for a ][for b, c ][for d ]
func together(read readNamespace) readNamespace {
	r := &readings{read: read, next: map[string]*reading{}}
	return r.get
}

type readings struct {
	read readNamespace
	mu   sync.Mutex
	// next has each namespace that is being read. It is nil if nobody waits for another reading.
	next map[string]*reading
}

// reading is one that has not begun.
type reading struct {
	done  chan struct{}
	found namespace
}

func (r *readings) get(ctx context.Context, name string) namespace {
	waited, first := r.join(name)
	if first {
		defer r.end(ctx, name)
		return r.read(ctx, name)
	}
	select {
	case <-waited.done:
		return waited.found
	case <-ctx.Done():
		return namespace{unread: context.Cause(ctx)}
	}
}

// join returns the next reading of a namespace, or that the caller is the first to read it.
func (r *readings) join(name string) (next *reading, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, busy := r.next[name]
	if !busy {
		r.next[name] = nil
		return nil, true
	}
	if next == nil {
		next = &reading{done: make(chan struct{})}
		r.next[name] = next
	}
	return next, false
}

// end is called when a reading has ended. It begins the next one if somebody waits for it, for as long as it takes:
// none of those who wait may end it for the others.
func (r *readings) end(ctx context.Context, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next[name]
	if next == nil {
		delete(r.next, name)
		return
	}
	r.next[name] = nil
	go func() {
		defer r.end(ctx, name)
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), readingFor)
		defer stop()
		next.found = r.read(ctx, name)
		close(next.done)
	}()
}
