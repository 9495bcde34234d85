// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// statusNamespaces have the Deployments of the cluster and of the platform.
var statusNamespaces = []string{"kube-system", "mlbatch-system"}

func statusCommand(config *localcluster.Config) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the cluster's programs, nodes, platform and resource usage; exit 1 if anything is unhealthy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return fmt.Errorf("unknown output format %q; choose text or json", format)
			}
			cluster, err := localcluster.New(*config, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			status := cluster.Status(cmd.Context(), statusNamespaces...)
			if format == "json" {
				err = printJSON(cmd.OutOrStdout(), status)
			} else {
				err = printStatus(cmd.OutOrStdout(), status)
			}
			if err == nil && status.Problem != "" {
				err = errors.New(status.Problem)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "output format: text or json")
	return cmd
}

func printJSON(out io.Writer, status localcluster.Status) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(status)
}

// printStatus prints the status. For a stopped cluster it prints nothing: the error says so.
func printStatus(out io.Writer, s localcluster.Status) error {
	if s.Use == nil {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "mode\t%s\naddress\t%s\nkubeconfig\t%s\nlogs\t%s\n", s.Mode, s.Address, s.Kubeconfig, s.Logs)
	for _, n := range s.Nodes {
		fmt.Fprintf(table, "%s nodes\t%d of %d ready\n", n.Kind, n.Ready, n.All)
	}
	fmt.Fprintf(table, "in use\t%d processes, %s of memory, %s of processor time, %s of disk\n",
		s.Use.Processes, mebibytes(s.Use.MemoryBytes), duration(s.Use.CPUSeconds), mebibytes(s.Use.DiskBytes))
	if err := table.Flush(); err != nil { // each table has its own column widths
		return err
	}
	printComponents(table, s.Components)
	if err := table.Flush(); err != nil {
		return err
	}
	printDeployments(table, s.Deployments)
	return table.Flush()
}

func printComponents(table io.Writer, components []localcluster.Component) {
	fmt.Fprintln(table, "\ncomponent\tversion\tstate\trestarts\tpid\tup\tprocessor\tmemory\thealth")
	for _, c := range components {
		process := "-\t-\t-\t-"
		if c.State == localcluster.Running {
			process = fmt.Sprintf("%d\t%s\t%s\t%s", c.PID, duration(c.UpSeconds), duration(c.CPUSeconds), mebibytes(c.MemoryBytes))
		}
		health := cmp.Or(c.Problem, "ok")
		if c.State == localcluster.Waiting {
			health = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", c.Name, cmp.Or(c.Version, "-"), c.State, c.Restarts, process, health)
	}
}

func printDeployments(table io.Writer, deployments []localcluster.Deployment) {
	if len(deployments) == 0 {
		return
	}
	fmt.Fprintln(table, "\ndeployment\tready\timages")
	for _, d := range deployments {
		fmt.Fprintf(table, "%s\t%d of %d\t%s\n", d.Name, d.Ready, d.All, strings.Join(d.Images, " "))
	}
}

func mebibytes(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

func duration(seconds float64) string {
	return (time.Duration(seconds) * time.Second).String()
}
