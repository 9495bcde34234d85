// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/controller/internal/fetch"
)

// filesCommand is for code that an Application has in itself.
func filesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "files FROM TO",
		Short: "Copy the files of a mounted ConfigMap",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return fetch.Files(args[0], args[1])
		},
	}
}
