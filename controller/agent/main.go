// SPDX-License-Identifier: Apache-2.0

// The agent: what MLBatch runs in the pods of Runs, beside the user's program. It brings code and
// data into folders before the program starts, and runs work queues. It knows nothing of the
// cluster, and has no rights there.
package main

import (
	"context"
	"errors"
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
		fmt.Fprintln(os.Stderr, err)
		sayLast(err.Error())
		var known exit
		if errors.As(err, &known) {
			os.Exit(known.code)
		}
		os.Exit(1)
	}
}

// sayLast tells the kubelet why the container ends, which the status of the Run says. Otherwise the
// kubelet would take lines of progress, too.
func sayLast(words string) {
	if message, missing := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0); missing == nil {
		fmt.Fprint(message, words)
		message.Close()
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
	all.AddCommand(filesCommand(), fetchCommand(), copyCommand(), installCommand(), brokerCommand(), workCommand())
	return all
}
