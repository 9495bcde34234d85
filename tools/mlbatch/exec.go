// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/commandline"
	"github.com/mlbatch/mlbatch/tools/mlbatch/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podexec"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

func execCommand() *cobra.Command {
	var where runNamespace
	var wanted work.Selection
	var rank int
	var command podexec.Command
	var stdin bool
	cmd := aboutWork(&cobra.Command{
		Use:   "exec NAME -- COMMAND [ARGUMENT...]",
		Short: "Run a command in a pod of an AppWrapper, a Run or a job",
		Long: "Run a command in the only pod, or in the one with rank 0. --rank and --pod choose another one. The exit status is\n" +
			"that of the command. For a shell: mlbatch exec NAME -it -- bash",
	}, &where, func(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
		if cmd.Flags().Changed("rank") {
			wanted.Rank = &rank
		}
		pod, err := work.PodOf(cmd.Context(), c, found, wanted)
		if err != nil {
			return err
		}
		command.Container = cmp.Or(command.Container, podlogs.Container(pod))
		command.Out, command.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if stdin {
			command.In = cmd.InOrStdin()
		}
		config, _, err := configOf(where.cluster, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		err = podexec.Run(cmd.Context(), config, pod, command)
		if ended := podexec.Ended(0); errors.As(err, &ended) {
			return commandline.ExitStatus(ended)
		}
		return err
	})
	about := cmd.RunE
	cmd.Args = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at := cmd.ArgsLenAtDash()
		if at != 1 || len(args) == 1 || args[0] == "" {
			return errors.New("name the work, and after -- the command: mlbatch exec NAME -- COMMAND")
		}
		command.Line = args[1:]
		return about(cmd, args[:1])
	}
	flags := cmd.Flags()
	flags.IntVar(&rank, "rank", 0, "rank of the pod, from 0")
	flags.StringVar(&wanted.Pod, "pod", "", "name of the pod")
	flags.StringVarP(&command.Container, "container", "c", "", "container (default: the one that the pod names, or its first)")
	flags.BoolVarP(&stdin, "stdin", "i", false, "pass standard input to the command")
	flags.BoolVarP(&command.TTY, "tty", "t", false, "standard input is a terminal")
	cmd.MarkFlagsMutuallyExclusive("rank", "pod")
	return cmd
}
