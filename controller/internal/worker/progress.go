// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"io"
	"time"
)

// stalled is how long a request may make no progress. How long it takes in all does not matter: a large file
// through a slow network arrives in the end, and would never do so if it began again and again.
const stalled = 5 * time.Minute

// progress ends a request that makes none.
type progress struct {
	timer    *time.Timer
	patience time.Duration
	end      context.CancelFunc
}

// watch begins to watch a request that is made with the context.
func (w *Worker) watch(ctx context.Context) (context.Context, *progress) {
	ctx, end := context.WithCancel(ctx)
	patience := cmp.Or(w.patience, stalled)
	timer := time.AfterFunc(patience, end)
	return ctx, &progress{timer: timer, patience: patience, end: func() { timer.Stop(); end() }}
}

// of is a body whose reads are progress.
func (p *progress) of(body io.Reader) io.Reader { return &moving{body, p} }

type moving struct {
	io.Reader
	progress *progress
}

// Read begins the patience again.
func (m *moving) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if n > 0 {
		m.progress.timer.Reset(m.progress.patience)
	}
	return n, err
}
