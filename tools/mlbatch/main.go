// SPDX-License-Identifier: Apache-2.0

// Command mlbatch installs and checks the platform, submits jobs, and runs local clusters.
// It prints an error as one line on standard error, and exits with status 1.
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

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt kills the program
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if status := exitStatus(0); errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mlbatch:", err)
		os.Exit(1)
	}
}

// exitStatus is the exit status of a program that mlbatch started. That program has printed
// its error already.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// run runs one command line. It writes results to out, and progress and warnings to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	versions, err := setup.Load()
	if err != nil {
		return err
	}
	root := &cobra.Command{
		Use:           "mlbatch",
		Short:         "Queueing, quota and fault recovery for batch AI/ML work on Kubernetes",
		Version:       versions.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Suggestions would make an error longer than one line.
		DisableSuggestions: true,
	}
	root.AddCommand(installCommand(), upgradeCommand(), uninstallCommand(), componentsCommand(), clusterCommand(), submitCommand(versions.Version))
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(progress)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown ") { // cobra's errors for unknown commands and flags
		return fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())
	}
	if status := exitStatus(0); errors.As(err, &status) {
		return err
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, submit.ErrInterrupted) && !errors.Is(err, install.ErrInterrupted) {
		return errors.New("interrupted; run the command again") // not err, which is only a consequence
	}
	return err
}
