// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/platform"
)

// upFlags are those of cluster up beside the group's.
type upFlags struct {
	port, nodes int
	mode        string
	platform    bool
}

func upCommand(config *localcluster.Config) *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Build what is missing and start the cluster; harmless if it runs already",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return up(cmd, *config, flags) },
	}
	cmd.Flags().IntVar(&flags.port, "port", localcluster.DefaultPort, "port on 127.0.0.1 for the API server")
	cmd.Flags().IntVar(&flags.nodes, "simulated-nodes", localcluster.DefaultSimulatedNodes, "number of KWOK nodes with 8 GPUs each")
	cmd.Flags().StringVar(&flags.mode, "mode", string(localcluster.Real),
		"real: one node runs containers, for which root is needed; simulated: KWOK nodes take all pods but the platform's, which are processes")
	cmd.Flags().BoolVar(&flags.platform, "platform", false, "install the platform too, and onboard the teams blue and red")
	return cmd
}

func up(cmd *cobra.Command, config localcluster.Config, flags upFlags) error {
	// What is left open follows a cluster that runs.
	if cmd.Flags().Changed("port") {
		config.Port = flags.port
	}
	if cmd.Flags().Changed("simulated-nodes") {
		config.SimulatedNodes = cmp.Or(flags.nodes, -1) // 0 means none, too
	}
	if cmd.Flags().Changed("mode") {
		config.Mode = localcluster.Mode(flags.mode)
	}
	cluster, err := localcluster.New(config, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	bring := cluster.Up
	if flags.platform {
		checkout, err := localcluster.FindCheckout(cmp.Or(config.Checkout, "."))
		if err != nil {
			return err
		}
		bring = platform.Site{Cluster: cluster, Checkout: checkout, Progress: cmd.ErrOrStderr()}.Up
	}
	if err := bring(cmd.Context()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", cluster.KubeconfigPath())
	return nil
}
