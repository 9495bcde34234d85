// SPDX-License-Identifier: Apache-2.0

// Command mlbatch is the tool of administrators, researchers and developers of
// MLBatch. Every error is one sentence on standard error and exit status 1.
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
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if status := exitStatus(0); errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mlbatch:", err)
		os.Exit(1)
	}
}

// exitStatus is that of a program that mlbatch has started, and that has printed its error.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// run carries out one command line: results go to out, progress to progress.
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
		// An error is one sentence.
		DisableSuggestions: true,
	}
	root.AddCommand(installCommand(), upgradeCommand(), uninstallCommand(), componentsCommand(), clusterCommand(), submitCommand(versions.Version))
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(progress)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown ") { // commands and flags, says cobra
		return fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())
	}
	if status := exitStatus(0); errors.As(err, &status) {
		return err
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, submit.ErrInterrupted) && !errors.Is(err, install.ErrInterrupted) {
		return errors.New("interrupted; run the command again") // whatever it made fail
	}
	return err
}
