// SPDX-License-Identifier: Apache-2.0

// The agent: what MLBatch runs in the pods of Runs, beside the user's program. It brings code into
// a folder before the program starts. It knows nothing of the cluster, and has no rights there.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "unreleased"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// What this program writes is for a program that runs as another user.
	syscall.Umask(0)
	if err := command().ExecuteContext(ctx); err != nil {
		// The last lines of the log are what the status of the Run says.
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// command has a subcommand for each file of this package.
func command() *cobra.Command {
	all := &cobra.Command{
		Use:           "agent",
		Short:         "What MLBatch runs in the pods of Runs",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	all.AddCommand(filesCommand(), fetchCommand())
	return all
}
