// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

func listCommand() *cobra.Command {
	var where runNamespace
	var everywhere bool
	var o output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List AppWrappers and queued jobs, and say in a word why they wait",
		Long: "List the AppWrappers of a namespace, and bare jobs that are in a queue. REASON is the first cause that\n" +
			"'mlbatch why' names. It reads seven lists, whatever there is, and changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := where.orAll(everywhere); err != nil {
				return err
			}
			c, namespace, err := where.connectReader(cmd)
			if err != nil {
				return err
			}
			if everywhere {
				namespace = ""
			}
			return listWork(cmd, c, namespace, o)
		},
	}
	flags := cmd.Flags()
	where.bind(flags, ofTheWork)
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "list the work of all namespaces")
	o.bindTable(flags, "wide")
	return cmd
}

func listWork(cmd *cobra.Command, c client.Client, namespace string, o output) error {
	now := time.Now()
	all, err := work.List(cmd.Context(), c, namespace, now)
	if err != nil {
		return err
	}
	printNotes(cmd.ErrOrStderr(), all.Unknown)
	return o.print(cmd.OutOrStdout(), "WorkList", all, func() error {
		if len(all.Items) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "there is no work in", cmp.Or(namespace, "any namespace"))
			return nil
		}
		return all.WriteTable(cmd.OutOrStdout(), work.Columns{Namespace: namespace == "", Wide: o.format == "wide"}, now)
	})
}
