// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// slow is how long a command may take before it says how long it took. Tests change it.
var slow = time.Second

// requests counts what is asked of the cluster.
type requests struct{ made atomic.Int64 }

type requestsKey struct{}

// timed is a command that says on standard error how many requests it made and how long they took, with
// --verbose, or if they took long.
func timed(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	verbose := cmd.Flags().BoolP("verbose", "v", false, "say how many requests were made, and how long they took")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		count, began := &requests{}, time.Now()
		cmd.SetContext(context.WithValue(cmd.Context(), requestsKey{}, count))
		err := run(cmd, args)
		took, watches := time.Since(began), cmd.Flags().Changed("watch")
		if *verbose || took > slow && !watches {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d requests, %.1f s\n", count.made.Load(), took.Seconds())
		}
		return err
	}
	return cmd
}

// counted counts the requests of a command that is timed.
func counted(ctx context.Context, next http.RoundTripper) http.RoundTripper {
	count, timed := ctx.Value(requestsKey{}).(*requests)
	if !timed {
		return next
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		count.made.Add(1)
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
