// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// longestEcho is how long a look waits for the cache. Versions go back if somebody restores the
// API server from a backup.
const longestEcho = 10 * time.Second

// echoes are our writes that the cache does not have yet. A look at an older AppWrapper would ask
// the API server in vain, because its save is refused. The echo triggers a look.
type echoes struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]echo
}

type echo struct {
	version uint64
	written time.Time
}

// expect remembers the answer to a write.
func (e *echoes) expect(saved client.Object, now time.Time) {
	version, err := strconv.ParseUint(saved.GetResourceVersion(), 10, 64)
	if err != nil {
		return // opaque: every look counts
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending == nil {
		e.pending = map[types.NamespacedName]echo{}
	}
	e.pending[client.ObjectKeyFromObject(saved)] = echo{version, now}
}

// await returns how long at most to wait for the echo of the last write to an AppWrapper that
// the cache has; 0 if there is nothing to wait for.
func (e *echoes) await(cached client.Object, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	last, written := e.pending[key]
	if !written {
		return 0
	}
	version, err := strconv.ParseUint(cached.GetResourceVersion(), 10, 64)
	wait := longestEcho - now.Sub(last.written)
	if err != nil || version >= last.version || wait <= 0 {
		delete(e.pending, key)
		return 0
	}
	return wait
}

// forget is for an AppWrapper that is gone.
func (e *echoes) forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pending, key)
}
