// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// rootCommand has one subcommand for each thing that can be done with a local cluster.
func rootCommand() *cobra.Command {
	var config localcluster.Config
	group := &cobra.Command{
		Use:   "localcluster",
		Short: "Run a real Kubernetes on this machine, without Docker",
		Long: "Run a real Kubernetes on this machine, without Docker: its components are built from their pinned\n" +
			"Go modules and run in private namespaces. Needs Linux, Go, a checkout of MLBatch, and root for containers.",
		SilenceErrors: true,
		SilenceUsage:  true,
		// An error is one sentence.
		DisableSuggestions: true,
		// Without these a misspelt subcommand would print help and succeed.
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := group.PersistentFlags()
	flags.StringVar(&config.Name, "name", localcluster.DefaultName, "name of the cluster; several can run side by side")
	flags.StringVar(&config.Checkout, "checkout", "", "path of the MLBatch checkout (default: found from the working directory upwards)")
	group.AddCommand(upCommand(&config), downCommand(&config), statusCommand(&config), kubeconfigCommand(&config),
		loadImageCommand(&config), leaksCommand(&config))
	return group
}

func downCommand(config *localcluster.Config) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove everything of it but the build cache",
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
		Short: "List processes, namespaces, mounts and cgroups that clusters left behind; fails if there are any",
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

// printLeaks lists leaks; that there are any is an error.
func printLeaks(out io.Writer, leaks []string) error {
	for _, leak := range leaks {
		fmt.Fprintln(out, leak)
	}
	if len(leaks) > 0 {
		return errors.New("clusters have left the above behind; end the processes, then run 'localcluster down' with the cluster's name")
	}
	return nil
}
