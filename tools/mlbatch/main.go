// SPDX-License-Identifier: Apache-2.0

// Command mlbatch installs, checks and audits the platform, submits jobs, and runs local
// clusters. It prints an error as one line on standard error, and exits with status 1.
package main

import (
	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/commandline"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

func main() { program().Main() }

func program() commandline.Program {
	return commandline.Program{
		Name:        "mlbatch",
		Root:        rootCommand,
		Interrupted: []error{install.ErrInterrupted, submit.ErrInterrupted, runs.ErrInterrupted, work.ErrInterrupted},
	}
}

// rootCommand returns the mlbatch command with all its subcommands.
func rootCommand(version string) *cobra.Command {
	root := &cobra.Command{Short: "Queueing, quota and fault recovery for batch AI/ML work on Kubernetes"}
	root.AddGroup(&cobra.Group{ID: "work", Title: "Your work:"}, &cobra.Group{ID: "team", Title: "Teams and quota:"},
		&cobra.Group{ID: "platform", Title: "The platform, for administrators:"})
	below(root, "work", submitCommand(version), shellCommand(version), timed(listCommand()), timed(statusOfWorkCommand()), timed(whyCommand()), logsOfWorkCommand(),
		waitCommand(), execCommand(), portForwardCommand(), cpCommand(), cancelWorkCommand(), retryWorkCommand(version), runCommand(version), queueCommand(), packCommand())
	below(root, "team", timed(topCommand()), timed(usageCommand()), webCommand(), teamCommand())
	below(root, "platform", installCommand(), upgradeCommand(), uninstallCommand(), componentsCommand(), imagesCommand(), timed(checkCommand()), auditCommand(), versionCommand(version), clusterCommand())
	completing(root)
	return root
}

// below adds commands below a heading of the help.
func below(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
}
