// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// rootCommand returns the localcluster command with all its subcommands.
func rootCommand(string) *cobra.Command {
	var config localcluster.Config
	group := &cobra.Command{
		Short: "Run a real Kubernetes on this machine, without Docker",
		Long: "Run a real Kubernetes on this machine, without Docker. Its components are built from their pinned\n" +
			"Go modules and run in private namespaces. It needs Linux, Go, a checkout of MLBatch, and root for containers.",
		// Without these two, a misspelt subcommand would print help and succeed.
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := group.PersistentFlags()
	flags.StringVar(&config.Name, "name", localcluster.DefaultName, "name of the cluster; several clusters can run at the same time")
	flags.StringVar(&config.Checkout, "checkout", "", "path of the MLBatch checkout (default: the one that contains the working directory)")
	group.AddCommand(upCommand(&config), downCommand(&config), statusCommand(&config), kubeconfigCommand(&config),
		loadImageCommand(&config), leaksCommand(&config))
	return group
}

func downCommand(config *localcluster.Config) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster and remove everything except the build cache",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := localcluster.New(*config, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return cluster.Down()
		},
	}
}

func kubeconfigCommand(config *localcluster.Config) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the running cluster's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := localcluster.New(*config, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if _, err := cluster.Kubeconfig(); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), cluster.KubeconfigPath())
			return nil
		},
	}
}

func loadImageCommand(config *localcluster.Config) *cobra.Command {
	return &cobra.Command{
		Use:   "load-image ARCHIVE...",
		Short: "Make the images of OCI or Docker archives available to the cluster's pods",
		RunE: func(cmd *cobra.Command, archives []string) error {
			if len(archives) == 0 {
				return errors.New("name at least one image archive to load")
			}
			cluster, err := localcluster.New(*config, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return cluster.LoadImages(cmd.Context(), archives...)
		},
	}
}

func leaksCommand(config *localcluster.Config) *cobra.Command {
	return &cobra.Command{
		Use:   "leaks",
		Short: "List processes, namespaces, mounts and cgroups that clusters left behind; exit 1 if there are any",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			leaks, err := localcluster.Leaks(*config)
			if err != nil {
				return err
			}
			return printLeaks(cmd.OutOrStdout(), leaks)
		},
	}
}

// printLeaks lists leaks, and returns an error if there are any.
func printLeaks(out io.Writer, leaks []string) error {
	for _, leak := range leaks {
		fmt.Fprintln(out, leak)
	}
	if len(leaks) > 0 {
		return errors.New("clusters left the above behind; kill the processes, then run 'localcluster down' with the cluster's name")
	}
	return nil
}
