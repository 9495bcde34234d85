// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"sync"
	"time"
)

const (
	// defaultsFor is how long the defaults of a team are not read again: many jobs often come together.
	defaultsFor = 10 * time.Second
	// mostNamespaces bounds the memory.
	mostNamespaces = 1024
)

// recently reads a namespace once in that time. It is for defaults only: what is refused depends on the
// namespace as it is. One that could not be read is read again.
func recently(read readNamespace, keep time.Duration, now func() time.Time) readNamespace {
	type entry struct {
		namespace
		until time.Time
	}
	var mu sync.Mutex
	entries := map[string]entry{}
	return func(ctx context.Context, name string) namespace {
		asked := now()
		mu.Lock()
		known, there := entries[name]
		mu.Unlock()
		if there && asked.Before(known.until) {
			return known.namespace
		}
		found := read(ctx, name)
		if found.unread != nil {
			return found
		}
		mu.Lock()
		defer mu.Unlock()
		if len(entries) >= mostNamespaces {
			clear(entries)
		}
		entries[name] = entry{found, asked.Add(keep)}
		return found
	}
}
