// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

func cancelCommand() *cobra.Command {
	return changeCommand("cancel NAME", "End a Run, and keep its record", runs.Cancel)
}

func retryCommand() *cobra.Command {
	return changeCommand("retry NAME", "Submit a Run again, as NAME-2 or with the next free number", runs.Retry)
}

// changeCommand does something to one Run.
func changeCommand(use, short string, do func(context.Context, client.Client, client.ObjectKey, io.Writer) error) *cobra.Command {
	var where runNamespace
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  oneRun,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, namespace, err := where.connect(cmd)
			if err != nil {
				return err
			}
			return do(cmd.Context(), c, client.ObjectKey{Namespace: namespace, Name: names[0]}, cmd.OutOrStdout())
		},
	}
	where.bind(cmd.Flags(), ofTheContext)
	return cmd
}
