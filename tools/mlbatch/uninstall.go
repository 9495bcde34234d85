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
		Use:     "uninstall",
		Example: "  mlbatch uninstall",
		Short:   "Remove the platform; CRDs, queues and the teams' namespaces are kept",
		Long: "Remove the platform from the cluster of your kubeconfig. CustomResourceDefinitions, queues, flavors and namespaces\n" +
			"are kept with all their content, and so is the release of the teams unless --with-teams is given. The command\n" +
			"fails if there is work that only the platform can delete.",
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
	cmd.Flags().BoolVar(&u.Force, "force", false, "uninstall even if work is left that cannot be deleted until the platform is installed again")
	cmd.Flags().BoolVar(&u.ResumeInterrupted, "resume-interrupted", false, "go on although another command began to change a release and has not finished: it was killed")
	cmd.Flags().DurationVar(&u.Timeout, "timeout", helmrelease.DefaultTimeout, "how long to wait until everything is gone")
	return cmd
}
