// SPDX-License-Identifier: Apache-2.0

package components

import (
	"context"
	"fmt"
	"io"
	"time"
)

// line prints the progress of one component.
type line struct {
	out  io.Writer
	text string
}

// start prints that the build starts, and on success how long it took.
func (l line) start(ctx context.Context) (stop func(error)) {
	fmt.Fprintf(l.out, "%s: building\n", l.text)
	begin, silence := time.Now(), l.remind(ctx)
	return func(err error) {
		silence()
		if err == nil {
			fmt.Fprintf(l.out, "%s: built in %s\n", l.text, time.Since(begin).Round(time.Second))
		}
	}
}

// remind prints every 30 seconds that the build is still running, until stop.
func (l line) remind(ctx context.Context) (stop func()) {
	begin := time.Now()
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintf(l.out, "%s: still building, %s\n", l.text, time.Since(begin).Round(time.Second))
			}
		}
	}()
	return func() { close(done) }
}
