// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/mlbatch/top"
)

func topCommand() *cobra.Command {
	var where runNamespace
	var format string
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the quota of teams: what is used, borrowed, lent and pending",
		Long: "Show the quota of each team, what is lent in each cohort, and whether the nodes have what is promised. Who may\n" +
			"not see ClusterQueues gets the queues of the namespace.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(format, formats); err != nil {
				return err
			}
			c, namespace, err := where.connectReader(cmd)
			if err != nil {
				return err
			}
			objects, err := top.Read(cmd.Context(), c, namespace)
			if err != nil {
				return err
			}
			overview := top.Judge(objects)
			printNotes(cmd.ErrOrStderr(), overview.Notes)
			if len(overview.Teams)+len(overview.Queues) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "there are no queues")
			}
			out := cmd.OutOrStdout()
			return printAs(out, format, overview, func() error { return overview.WriteTable(out, format == "wide") })
		},
	}
	where.bind(cmd.Flags(), "namespace of the queues of a member (default: the one in the context)")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, wide, json or yaml")
	return cmd
}
