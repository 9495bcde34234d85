// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

func componentsCommand() *cobra.Command {
	var w where
	var o output
	cmd := &cobra.Command{
		Use:     "components",
		Example: "  mlbatch components -o json",
		Short:   "Show the parts of the platform, which versions a cluster has, and whether they are ready",
		Long: "Show the releases and the parts of the platform: the version that this command installs, the version that the\n" +
			"cluster of your kubeconfig has, and whether it is ready. A part is external if it is disabled but the cluster has it\n" +
			"anyway. The command fails if an installed part is not ready.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := install.Components(cmd.Context(), w.cluster, w.platform(), w.teams())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			err = o.print(out, "ComponentList", printing.Items[install.Component]{Items: all}, func() error { return printParts(out, all) })
			if err != nil {
				return err
			}
			return unready(all)
		},
	}
	w.bind(cmd.Flags())
	o.bindTable(cmd.Flags())
	return cmd
}

func printParts(out io.Writer, all []install.Component) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "component\twanted\tfound\tstate\tready")
	for _, c := range all {
		ready := "-"
		switch {
		case c.Ready:
			ready = "yes"
		case c.Why != "":
			ready = "no: " + c.Why
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", c.Name, c.Wanted, cmp.Or(c.Found, "-"), c.State, ready)
	}
	return table.Flush()
}

// unready returns an error if an installed part is not ready, or if a part is not fully removed.
func unready(all []install.Component) error {
	bad := 0
	for _, c := range all {
		if c.State == "leaving" || c.State == "installed" && !c.Ready {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d component(s) not ready; see the table for the reasons", bad)
}
