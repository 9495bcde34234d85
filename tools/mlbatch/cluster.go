// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/commandline"
)

// clusterCommand passes all arguments to the localcluster program, which runs on Linux only.
func clusterCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "cluster COMMAND",
		Example: "  mlbatch cluster --help",
		Short:   "Run a local Kubernetes cluster for development (starts the localcluster program)",
		// localcluster parses its own flags.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := findLocalcluster(os.Executable)
			if err != nil {
				return err
			}
			return startLocalcluster(cmd.Context(), cmd, program, args)
		},
	}
}

// findLocalcluster looks for localcluster next to this program, where 'make build' puts both,
// and then in PATH.
func findLocalcluster(executable func() (string, error)) (string, error) {
	if self, err := executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "localcluster")
		if found, err := exec.LookPath(beside); err == nil {
			return found, nil
		}
	}
	found, err := exec.LookPath("localcluster")
	if err != nil {
		return "", errors.New("cannot find the localcluster program next to mlbatch or in PATH: run 'make build' in a checkout of MLBatch on Linux")
	}
	return found, nil
}

// startLocalcluster runs the program. On an interrupt it still waits, because localcluster
// cleans up before it exits.
func startLocalcluster(ctx context.Context, cmd *cobra.Command, program string, args []string) error {
	child := exec.CommandContext(ctx, program, args...)
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	err := child.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return commandline.ExitStatus(exit.ExitCode()) // localcluster has printed the error
	}
	return err
}
