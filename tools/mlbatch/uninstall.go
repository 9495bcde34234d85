// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/uninstall"
)

func uninstallCommand() *cobra.Command {
	var w where
	var u uninstall.Uninstaller
	var withTeams bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the platform; kinds, queues and the teams' namespaces stay",
		Long: "Remove the platform from the cluster of your kubeconfig. CustomResourceDefinitions, queues, flavors and namespaces\n" +
			"stay, with all that is in them, and so does the release of the teams unless --with-teams is given. As long as\n" +
			"there is work that nobody could remove afterwards nothing is removed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			u.Cluster, u.Platform, u.Progress = w.cluster, w.platform(), cmd.ErrOrStderr()
			if teams := w.teams(); withTeams {
				u.Teams = &teams
			}
			outcomes, err := u.Uninstall(cmd.Context())
			for _, o := range outcomes {
				fmt.Fprintf(cmd.OutOrStdout(), "release %s in namespace %s: %s\n", o.Release, o.Namespace, o.Done)
			}
			return err
		},
	}
	w.bind(cmd.Flags())
	cmd.Flags().BoolVar(&withTeams, "with-teams", false, "remove the release of the teams first: roles, limits and network policies")
	cmd.Flags().BoolVar(&u.Force, "force", false, "leave work behind that nobody can remove until the platform is back")
	cmd.Flags().DurationVar(&u.Timeout, "timeout", helmrelease.DefaultTimeout, "how long to wait until everything is gone")
	return cmd
}
