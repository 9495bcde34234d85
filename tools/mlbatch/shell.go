// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/commandline"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podexec"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// visit is what flags say about a queued shell.
type visit struct {
	submission
	idle time.Duration
}

// shell prefers bash, which ends when nobody has typed anything for so long. Most images have one of the two.
func (v visit) shell() []string {
	return []string{"sh", "-c", fmt.Sprintf("export TMOUT=%d; command -v bash >/dev/null && exec bash; exec sh", int(v.idle.Seconds()))}
}

func shellCommand(version string) *cobra.Command {
	var v visit
	cmd := &cobra.Command{
		Use:   "shell [flags] [-- COMMAND…]",
		Short: "Open a shell in a pod of its own, when its queue admits it",
		Long: "Submit a job of one pod, wait in its queue, and open a shell in it, or run a command. The job is deleted when the\n" +
			"shell ends, which bash does when nobody types for a while (--idle). If this program cannot delete the job, it ends\n" +
			"when nobody has been in its pod for as long.",
		Example: "  mlbatch shell --image pytorch/pytorch --gpus 1\n  mlbatch shell --image pytorch/pytorch --gpus 1 -- nvidia-smi",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("write the command after --: mlbatch shell -- %s", args[0])
			}
			return v.run(cmd, version, args)
		},
	}
	flags := cmd.Flags()
	v.bindSettings(flags)
	flags.DurationVar(&v.idle, "idle", 30*time.Minute, "end the shell when nobody types for so long, and the job when nobody is in its pod for so long")
	return cmd
}

func (v visit) run(cmd *cobra.Command, version string, line []string) error {
	if v.idle < time.Minute {
		return errors.New("--idle is shorter than a minute: write a time such as 30m")
	}
	settings, err := v.settings(cmd)
	if err != nil {
		return err
	}
	job, err := submit.Shell(version, settings, v.idle)
	if err != nil {
		return err
	}
	c, current, err := connect(cmd, v.cluster)
	if err != nil {
		return err
	}
	if err := job.In(v.namespace, current); err != nil {
		return err
	}
	if err := v.create(cmd.Context(), cmd, c, job, cmd.ErrOrStderr()); err != nil {
		return err
	}
	defer leave(cmd, c, job)
	pod, err := entrance(cmd.Context(), c, job, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return v.enter(cmd, pod, line)
}

// entrance waits until the pod of a job runs, and prints the job's progress meanwhile.
func entrance(ctx context.Context, c client.WithWatch, job submit.Job, progress io.Writer) (corev1.Pod, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- job.Wait(ctx, c, progress) }()
	for {
		pod, err := work.PodOf(ctx, c, explain.Objects{AppWrapper: job.AppWrapper()}, work.Selection{})
		if err == nil && isUp(pod) {
			stop()
			<-ended // it prints nothing more
			return pod, nil
		}
		select {
		case err := <-ended:
			if errors.Is(err, submit.ErrInterrupted) { // here the job does not continue
				err = errors.New("interrupted before the shell opened")
			}
			return corev1.Pod{}, cmp.Or(err, errors.New("the job has ended before the shell opened: raise --idle, or see its setup commands"))
		case <-time.After(time.Second):
		}
	}
}

// isUp reports whether the container that people enter runs.
func isUp(pod corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == podlogs.Container(pod) {
			return c.State.Running != nil
		}
	}
	return false
}

// enter runs a shell, or a command, in a pod. The exit status is that of the command.
func (v visit) enter(cmd *cobra.Command, pod corev1.Pod, line []string) error {
	config, _, err := configOf(cmd, v.cluster)
	if err != nil {
		return err
	}
	in := cmd.InOrStdin()
	inside := podexec.Command{Container: podlogs.Container(pod), Line: line, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
	if len(line) == 0 {
		inside.Line, inside.In, inside.TTY = v.shell(), in, term.TTY{In: in}.IsTerminalIn()
	}
	err = podexec.Run(cmd.Context(), config, pod, inside)
	if ended := podexec.Ended(0); errors.As(err, &ended) {
		return commandline.ExitStatus(ended)
	}
	return err
}

// leave deletes the job, also if the user has interrupted this program.
func leave(cmd *cobra.Command, c client.Client, job submit.Job) {
	ctx, enough := context.WithTimeout(context.WithoutCancel(cmd.Context()), 10*time.Second)
	defer enough()
	if err := work.Cancel(ctx, c, explain.Objects{AppWrapper: job.AppWrapper()}, cmd.ErrOrStderr()); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %v; it ends by itself when nobody is in its pod: 'mlbatch cancel %s' ends it now\n", err, job.Name())
	}
}
