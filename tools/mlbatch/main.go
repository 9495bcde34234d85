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
	"github.com/mlbatch/mlbatch/tools/installer"
	"github.com/mlbatch/mlbatch/tools/submit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // who asks twice does not want to wait
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mlbatch:", err)
		os.Exit(1)
	}
}

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
	if err != nil && ctx.Err() != nil && !errors.Is(err, submit.ErrGoesOn) && !errors.Is(err, installer.ErrInterrupted) {
		return errors.New("interrupted; run the command again") // whatever it made fail
	}
	return err
}
