// SPDX-License-Identifier: Apache-2.0

// Command vm runs the local cluster on stock Debian releases, with systemd and cgroup v2, each
// in a virtual machine of its own. It builds everything from Debian's packages and this
// checkout. The machine has no network and leaves nothing behind. It uses hardware acceleration
// if available.
//
//	this machine                              │ virtual machine: stock Debian
//	                                          │
//	vm ── mmdebstrap, mke2fs ── disk ─────────┼─► / (a copy that is thrown away)
//	   ── checkout, Go, caches (read-only) ───┼─► /root/…
//	   ◄─ a line for each step ───────────────┼── vm inside, started by systemd:
//	                                          │   localcluster up, pods, down, leaks
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 1 && args[0] == insideCommand {
		return inside(ctx, out)
	}
	flags := flag.NewFlagSet("vm", flag.ContinueOnError)
	releases := flags.String("debian", "bookworm,trixie", "Debian releases to run on, one after the other")
	timeout := flags.Duration("timeout", 2*time.Hour, "how long one virtual machine may take")
	console := flags.String("consoles", "dist/vm", "folder for the machines' serial consoles and, if a step fails, the cluster's logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	site, err := prepare(ctx, *console)
	if err != nil {
		return err
	}
	defer func() { _ = filecache.Sweep(site.scratch) }() // an interrupted program may still write there
	var failed error
	for _, release := range strings.Split(*releases, ",") {
		if err := site.runOn(ctx, release, *timeout, out); err != nil {
			failed = errors.Join(failed, fmt.Errorf("on Debian %s: %w", release, err))
		}
	}
	return failed
}
