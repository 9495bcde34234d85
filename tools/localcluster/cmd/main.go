// SPDX-License-Identifier: Apache-2.0

// Command localcluster runs a real Kubernetes on a Linux machine, without Docker, to develop
// MLBatch. It prints an error as one line on standard error, and exits with status 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mlbatch/mlbatch/setup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt kills the program
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}

// run runs one command line. It writes results to out.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	versions, err := setup.Load()
	if err != nil {
		return err
	}
	root := rootCommand()
	root.Version = versions.Version
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(progress)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown ") { // cobra: command or flag
		return fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())
	}
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted; run the command again") // err is a consequence
	}
	return err
}
