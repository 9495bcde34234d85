// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/worker"
)

// workCommand runs tasks of a work queue.
func workCommand() *cobra.Command {
	w := worker.Worker{Stdout: os.Stdout, Stderr: os.Stderr}
	command := &cobra.Command{
		Use:   "work",
		Short: "Run the tasks of a work queue until there are none",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			w.Queue, w.Line = os.Getenv(queue.AddressVariable), os.Getenv(queue.CommandVariable)
			if w.Queue == "" || w.Line == "" {
				return fmt.Errorf("set %s and %s", queue.AddressVariable, queue.CommandVariable)
			}
			if w.Name == "" {
				w.Name, _ = os.Hostname()
			}
			return w.Run(command.Context())
		},
	}
	command.Flags().StringVar(&w.Name, "name", "", "name of the worker (the default is that of the host)")
	command.Flags().StringVar(&w.Folder, "work", "", "folder for the files of tasks (the default is the one for temporary files)")
	return command
}
