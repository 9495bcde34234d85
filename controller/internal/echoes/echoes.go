// SPDX-License-Identifier: Apache-2.0

// Package echoes answers one question: does the cache have our own last write to an object yet? It
// remembers the versions of writes, and asks nobody.
package echoes

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Longest is how long a look waits for the cache. Versions go back if somebody restores the
// API server from a backup.
const Longest = 10 * time.Second

// many echoes are looked through for those that are not awaited any more, of objects that nobody looks at.
const many = 4096

// Pending are our writes to objects of one kind that the cache does not have yet. A look at an older
// object would ask the API server in vain, because its save is refused. The echo triggers a look.
// The zero value is ready for use.
type Pending struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]echo
}

type echo struct {
	version uint64
	written time.Time
}

// Expect remembers the answer to a write.
func (e *Pending) Expect(saved client.Object, now time.Time) { e.expect(saved, 0, now) }

// ExpectAfter remembers a deletion, whose answer has no version: only that the object had this one.
func (e *Pending) ExpectAfter(deleted client.Object, now time.Time) { e.expect(deleted, 1, now) }

func (e *Pending) expect(of client.Object, later uint64, now time.Time) {
	version, err := strconv.ParseUint(of.GetResourceVersion(), 10, 64)
	if err != nil {
		return // opaque: every look counts
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending == nil {
		e.pending = map[types.NamespacedName]echo{}
	}
	if len(e.pending) >= many {
		maps.DeleteFunc(e.pending, func(_ types.NamespacedName, of echo) bool { return now.Sub(of.written) >= Longest })
	}
	e.pending[client.ObjectKeyFromObject(of)] = echo{version + later, now}
}

// Await returns how long at most to wait for the echo of the last write to an object that
// the cache has; 0 if there is nothing to wait for.
func (e *Pending) Await(cached client.Object, now time.Time) time.Duration {
	version, err := strconv.ParseUint(cached.GetResourceVersion(), 10, 64)
	return e.await(client.ObjectKeyFromObject(cached), version, err == nil, now)
}

// AwaitCreated is for an object that the cache does not have. It may be gone again: then nothing tells
// before the time is over.
func (e *Pending) AwaitCreated(key types.NamespacedName, now time.Time) time.Duration {
	return e.await(key, 0, true, now)
}

func (e *Pending) await(key types.NamespacedName, version uint64, known bool, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, written := e.pending[key]
	if !written {
		return 0
	}
	wait := Longest - now.Sub(last.written)
	if !known || version >= last.version || wait <= 0 {
		delete(e.pending, key)
		return 0
	}
	return wait
}

// Forget is for an object that is gone.
func (e *Pending) Forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pending, key)
}
