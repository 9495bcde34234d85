// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/commandline"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podexec"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// choice is what flags say about the one pod that is meant.
type choice struct {
	wanted work.Selection
	rank   int
}

func (c *choice) bind(cmd *cobra.Command) {
	cmd.Flags().IntVar(&c.rank, "rank", 0, "rank of the pod, from 0")
	cmd.Flags().StringVar(&c.wanted.Pod, "pod", "", "name of the pod")
	cmd.MarkFlagsMutuallyExclusive("rank", "pod")
}

// pod is the only one, the one with rank 0, or the one that the flags name.
func (c *choice) pod(cmd *cobra.Command, reader client.Client, found explain.Objects) (corev1.Pod, error) {
	if cmd.Flags().Changed("rank") {
		c.wanted.Rank = &c.rank
	}
	return work.PodOf(cmd.Context(), reader, found, c.wanted)
}

// execution is what flags say about a command in a pod.
type execution struct {
	runNamespace
	choice  choice
	stdin   bool
	command podexec.Command
}

func execCommand() *cobra.Command {
	var x execution
	cmd := aboutWork(&cobra.Command{
		Use:     "exec NAME -- COMMAND [ARGUMENT...]",
		Example: "  mlbatch exec train -- nvidia-smi\n  mlbatch exec train --rank 1 -it -- bash",
		Short:   "Run a command in a pod of an AppWrapper, a Run or a job",
		Long: "Run a command in the only pod, or in the one with rank 0. --rank and --pod choose another one. The exit status is\n" +
			"that of the command. For a shell: mlbatch exec NAME -it -- bash",
	}, &x.runNamespace, x.run)
	about := cmd.RunE
	cmd.Args = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() != 1 || len(args) == 1 || args[0] == "" {
			return errors.New("name the work, and after -- the command: mlbatch exec NAME -- COMMAND")
		}
		x.command.Line = args[1:]
		return about(cmd, args[:1])
	}
	x.choice.bind(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&x.command.Container, "container", "c", "", "container (default: the one that the pod names, or its first)")
	flags.BoolVarP(&x.stdin, "stdin", "i", false, "pass standard input to the command")
	flags.BoolVarP(&x.command.TTY, "tty", "t", false, "standard input is a terminal")
	return cmd
}

func (x *execution) run(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
	pod, err := x.choice.pod(cmd, c, found)
	if err != nil {
		return err
	}
	config, _, err := configOf(cmd, x.cluster)
	if err != nil {
		return err
	}
	x.command.Container = cmp.Or(x.command.Container, podlogs.Container(pod))
	x.command.Out, x.command.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if x.stdin {
		x.command.In = cmd.InOrStdin()
	}
	if x.command.TTY && !(term.TTY{In: x.command.In}).IsTerminalIn() { // a shell would wait for a terminal's end of input
		fmt.Fprintln(cmd.ErrOrStderr(), "note: standard input is no terminal, so the command gets none")
		x.command.TTY = false
	}
	err = podexec.Run(cmd.Context(), config, pod, x.command)
	if ended := podexec.Ended(0); errors.As(err, &ended) {
		return commandline.ExitStatus(ended)
	}
	return err
}
