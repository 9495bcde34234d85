// SPDX-License-Identifier: Apache-2.0

// Package patience answers one question: how long may a test wait for something, on this machine and now? A test that
// waits must not fail because the machine is slow, or does something else at the same time. No test asserts how fast
// something was: a longer wait costs time only where something is broken.
package patience

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Limit is the deadline of tests on clusters, on a machine that does nothing else.
	Limit = 5 * time.Minute
	// Short is that of tests in memory. Mutants make some of them wait as long as that.
	Short = time.Minute
	// most is how many times longer a test may wait. Lanes have a limit, too.
	most = 4
)

// For returns how long to wait now for what takes no longer than a time on a quiet machine.
func For(quiet time.Duration) time.Duration {
	return time.Duration(float64(quiet) * min(most, max(1, slowness(), crowd(loadavg(), runtime.NumCPU()))))
}

// Await asks until nothing is missing, or ends the test after Limit.
func Await(t testing.TB, what string, missing func(context.Context) error) {
	t.Helper()
	var last error
	err := Poll(t.Context(), 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		last = missing(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

// Poll asks at an interval until a condition is true, an error ends it, or Limit is over.
func Poll(ctx context.Context, every time.Duration, condition wait.ConditionWithContextFunc) error {
	return PollFor(ctx, every, Limit, condition)
}

// PollFor is Poll with a limit of its own, for what takes longer. The machine may have become busy meanwhile.
func PollFor(ctx context.Context, every, quiet time.Duration, condition wait.ConditionWithContextFunc) error {
	return pollFor(ctx, every, func() time.Duration { return For(quiet) }, condition)
}

func pollFor(ctx context.Context, every time.Duration, limit func() time.Duration, condition wait.ConditionWithContextFunc) error {
	begin, left := time.Now(), limit()
	for {
		err := wait.PollUntilContextTimeout(ctx, every, left, true, condition)
		if !wait.Interrupted(err) || ctx.Err() != nil {
			return err
		}
		took := time.Since(begin)
		if left = limit() - took; left <= 0 {
			return fmt.Errorf("timed out after %s: %w", took.Round(time.Second), err)
		}
	}
}

// Context returns a context that ends after Limit.
func Context(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(parent, For(Limit))
}

// reference is how long the work took on the machine on which the times in tests were chosen (2 CPUs, Go 1.26) while it
// did nothing else.
const reference = 5 * time.Millisecond

// slowness is how many times longer the work takes than on that machine, in this process: with the race detector, too.
var slowness = sync.OnceValue(func() float64 {
	begin := time.Now()
	work()
	return float64(time.Since(begin)) / float64(reference)
})

// work is what tests wait for most: two goroutines that wake each other.
func work() {
	ping, pong := make(chan int), make(chan int)
	go func() {
		for n := range ping {
			pong <- n + 1
		}
		close(pong)
	}()
	n := 0
	for range 10_000 {
		ping <- n
		n = <-pong
	}
	close(ping)
	<-pong
}

// crowd is how many processes compete for a processor.
func crowd(load float64, processors int) float64 { return load / float64(processors) }

// loadavg is the average number of processes that could run in the last minute; 0 where nobody says it.
func loadavg() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	return parse(string(text))
}

func parse(loadavg string) float64 {
	first, _, _ := strings.Cut(loadavg, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
