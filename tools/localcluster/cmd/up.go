// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// upFlags are the flags of localcluster up.
type upFlags struct {
	port, nodes int
	mode        string
	platform    bool
}

func upCommand(config *localcluster.Config) *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Build what is missing and start the cluster; update it if it is already running",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return up(cmd, *config, flags) },
	}
	cmd.Flags().IntVar(&flags.port, "port", localcluster.DefaultPort, "port on 127.0.0.1 for the API server")
	cmd.Flags().IntVar(&flags.nodes, "simulated-nodes", localcluster.DefaultSimulatedNodes, "number of KWOK nodes with 8 GPUs each")
	cmd.Flags().StringVar(&flags.mode, "mode", string(localcluster.Real),
		"real: one node runs containers (needs root); simulated: KWOK nodes run all pods, except the platform's, which run as processes")
	cmd.Flags().StringVar(&config.Kubernetes, "kubernetes", "", "minor version of Kubernetes, such as 1.30, instead of that of setup/versions.yaml")
	cmd.Flags().BoolVar(&flags.platform, "platform", false, "also install the platform and onboard the teams blue and red")
	return cmd
}

func up(cmd *cobra.Command, config localcluster.Config, flags upFlags) error {
	config, err := flags.asked(cmd, config)
	if err != nil {
		return err
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

// asked sets only what flags set: a running cluster decides the rest.
func (f upFlags) asked(cmd *cobra.Command, config localcluster.Config) (localcluster.Config, error) {
	if cmd.Flags().Changed("port") {
		config.Port = f.port
		if f.port < 1 || f.port > 65535 {
			return config, fmt.Errorf("--port=%d: choose a port from 1 to 65535", f.port)
		}
	}
	if cmd.Flags().Changed("simulated-nodes") {
		config.SimulatedNodes = cmp.Or(f.nodes, -1) // 0 means none, too
		if f.nodes < 0 {
			return config, fmt.Errorf("--simulated-nodes=%d: choose 0 or more", f.nodes)
		}
	}
	if cmd.Flags().Changed("mode") {
		config.Mode = localcluster.Mode(f.mode)
	}
	return config, nil
}
