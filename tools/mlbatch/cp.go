// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podcopy"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podexec"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
)

// copying is what flags say about files.
type copying struct {
	runNamespace
	choice    choice
	container string
	from, to  podcopy.Place
}

func cpCommand() *cobra.Command {
	var x copying
	cmd := aboutWork(&cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy files into a pod of an AppWrapper, a Run or a job, or out of it",
		Long: "Copy a file or a folder into the only pod, or the one with rank 0, or out of it. One of SOURCE and DESTINATION is\n" +
			"NAME:PATH. A PATH without / begins where the program was started. The container needs tar. A link that is\n" +
			"named is followed; links and devices in a folder stay in the pod. NAME:. is what is in the folder of the program.",
		Example: "  mlbatch cp train:/checkpoints/last.pt .\n  mlbatch cp config.yaml train:/tmp/config.yaml --rank 1",
	}, &x.runNamespace, x.run)
	about := cmd.RunE
	cmd.Args, cmd.ValidArgsFunction = nil, nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return errors.New("name what is copied, and where to: mlbatch cp NAME:PATH PATH, or mlbatch cp PATH NAME:PATH")
		}
		x.from, x.to = podcopy.Parse(args[0]), podcopy.Parse(args[1])
		name, err := podcopy.Pair(x.from, x.to)
		if err != nil {
			return err
		}
		return about(cmd, []string{name})
	}
	x.choice.bind(cmd)
	cmd.Flags().StringVarP(&x.container, "container", "c", "", "container (default: the one that the pod names, or its first)")
	return cmd
}

func (x *copying) run(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
	pod, err := x.choice.pod(cmd, c, found)
	if err != nil {
		return err
	}
	config, _, err := configOf(cmd, x.cluster)
	if err != nil {
		return err
	}
	run := inContainer(config, pod, cmp.Or(x.container, podlogs.Container(pod)))
	if x.to.Work != "" {
		return podcopy.Put(cmd.Context(), run, x.from.Path, x.to.Path)
	}
	left, err := podcopy.Get(cmd.Context(), run, x.from.Path, x.to.Path)
	if left > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %d links and devices stay in the pod\n", left)
	}
	return err
}

// inContainer runs commands whose errors say what they wrote to their standard error.
func inContainer(config *rest.Config, pod corev1.Pod, container string) podcopy.Exec {
	return func(ctx context.Context, line []string, in io.Reader, out io.Writer) error {
		var wrong bytes.Buffer
		err := podexec.Run(ctx, config, pod, podexec.Command{Container: container, Line: line, In: in, Out: out, Err: &wrong})
		if text := strings.TrimSpace(wrong.String()); err != nil && text != "" {
			return errors.New(text)
		}
		return err
	}
}
