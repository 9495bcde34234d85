// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"time"

	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
)

// ErrReplaced is of a broker that has found a later one.
var ErrReplaced = errors.New("another broker has taken over this queue")

// progress is how far an operation is written.
type progress struct {
	operation taskqueue.Operation
	next      int
	accepted  string
	missing   bool
}

// advance makes the next write. After an error nobody knows whether it was made.
func (p *progress) advance(ctx context.Context, store Store, epoch int) error {
	write := p.operation.Writes[p.next]
	switch write.Kind {
	case taskqueue.CheckEpoch:
		latest, err := store.Epoch(ctx)
		if err == nil && latest > epoch {
			err = ErrReplaced
		}
		if err != nil {
			return err
		}
	case taskqueue.Publish:
		if p.accepted != "" {
			write.Token = p.accepted
		}
		fallthrough
	default:
		token, err := store.Do(ctx, write)
		if err != nil {
			return err
		}
		if write.Kind == taskqueue.Accept {
			p.accepted, p.missing = token, token == ""
		}
	}
	p.next++
	return nil
}

func (p *progress) finished() bool {
	return p.missing || p.next == len(p.operation.Writes)
}

func (p *progress) written() taskqueue.Written {
	return taskqueue.Written{Operation: p.operation, Accepted: p.accepted, Missing: p.missing}
}

const (
	// storeFailureLimit is how long a store may fail before the broker starts again.
	storeFailureLimit = 2 * time.Minute
	// A write that failed is made again after soonest; it doubles up to latest.
	soonest, latest = 50 * time.Millisecond, 5 * time.Second
)

// write makes all writes of an operation, each until it is known to be made.
func (b *Broker) write(ctx context.Context, p *progress) error {
	for pause, failing := soonest, time.Duration(0); !p.finished(); {
		err := p.advance(ctx, b.store, b.epoch)
		switch {
		case err == nil:
			pause, failing = soonest, 0
			continue
		case errors.Is(err, ErrReplaced), errors.Is(err, taskqueue.ErrHopeless), failing > storeFailureLimit, ctx.Err() != nil:
			return err
		}
		b.log.Printf("the store fails: %v", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		failing += pause
		pause = min(2*pause, latest)
	}
	return nil
}
