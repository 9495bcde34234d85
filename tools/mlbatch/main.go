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
	root.AddCommand(installCommand(), upgradeCommand(), uninstallCommand(), componentsCommand(), imagesCommand(), clusterCommand(), submitCommand(version), shellCommand(version), auditCommand(), runCommand(version), queueCommand(), packCommand(), timed(whyCommand()))
	root.AddCommand(timed(listCommand()), timed(statusOfWorkCommand()), waitCommand(), cancelWorkCommand(), retryWorkCommand(version), logsOfWorkCommand(), execCommand(), portForwardCommand(), cpCommand(), timed(topCommand()), timed(usageCommand()), timed(checkCommand()), teamCommand())
	return root
}
