// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// formats are those of commands that print tables.
var formats = []string{"table", "wide", "json", "yaml"}

// oneOf is an error if a format is none of these.
func oneOf(format string, known []string) error {
	if slices.Contains(known, format) {
		return nil
	}
	last := len(known) - 1
	return fmt.Errorf("unknown output format %q: use %s or %s", format, strings.Join(known[:last], ", "), known[last])
}

// printAs prints an object for programs, or with table for people.
func printAs(out io.Writer, format string, object any, table func() error) error {
	switch format {
	case "json":
		return printing.JSON(out, object)
	case "yaml":
		return printing.YAML(out, object)
	}
	return table()
}

func listCommand() *cobra.Command {
	var where runNamespace
	var everywhere bool
	var format string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List AppWrappers and queued jobs, and say in a word why they wait",
		Long: "List the AppWrappers of a namespace, and bare jobs that are in a queue. REASON is the first cause that\n" +
			"'mlbatch why' names. It reads seven lists, whatever there is, and changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(format, formats); err != nil {
				return err
			}
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
			return listWork(cmd, c, namespace, format)
		},
	}
	flags := cmd.Flags()
	where.bind(flags, ofTheWork)
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "list the work of all namespaces")
	flags.StringVarP(&format, "output", "o", "table", "table, wide, json or yaml")
	return cmd
}

func listWork(cmd *cobra.Command, c client.Client, namespace, format string) error {
	now := time.Now()
	all, err := work.List(cmd.Context(), c, namespace, now)
	if err != nil {
		return err
	}
	printNotes(cmd.ErrOrStderr(), all.Unknown)
	return printAs(cmd.OutOrStdout(), format, all, func() error {
		if len(all.Items) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "there is no work in", cmp.Or(namespace, "any namespace"))
			return nil
		}
		return all.WriteTable(cmd.OutOrStdout(), work.Columns{Namespace: namespace == "", Wide: format == "wide"}, now)
	})
}
