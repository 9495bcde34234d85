// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

func queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Add tasks to the work queue of a Run, and look at them",
	}
	cmd.AddCommand(addTasksCommand(), listTasksCommand(), drainCommand())
	return cmd
}

func addTasksCommand() *cobra.Command {
	var where runNamespace
	cmd := &cobra.Command{
		Use:     "add RUN FILE…",
		Example: "  mlbatch queue add survey tasks/a.json tasks/b.json",
		Short:   "Make a task of each file, in a queue that is open",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("name a Run and the files of the tasks: mlbatch queue add RUN FILE…")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.withQueue(cmd, args[0], func(q *runs.Queue) error { return q.Add(cmd.Context(), args[1:], cmd.OutOrStdout()) })
		},
	}
	where.bind(cmd.Flags(), ofTheContext)
	return cmd
}

func listTasksCommand() *cobra.Command {
	var where runNamespace
	var o output
	cmd := &cobra.Command{
		Use:     "ls RUN",
		Example: "  mlbatch queue ls survey",
		Short:   "Count the tasks of a queue, and list those that were given up or are being worked on",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.withQueue(cmd, args[0], func(q *runs.Queue) error {
				stat, err := q.Stat(cmd.Context())
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				return o.print(out, "WorkQueue", runs.ForPrograms(stat), func() error { return runs.WriteQueue(out, stat) })
			})
		},
	}
	where.bind(cmd.Flags(), ofTheContext)
	o.bindTable(cmd.Flags())
	return cmd
}

func drainCommand() *cobra.Command {
	var where runNamespace
	cmd := &cobra.Command{
		Use:     "drain RUN",
		Example: "  mlbatch queue drain survey",
		Short:   "Close an open queue: the Run ends when all tasks have ended",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.withQueue(cmd, args[0], func(q *runs.Queue) error { return q.Drain(cmd.Context(), cmd.OutOrStdout()) })
		},
	}
	where.bind(cmd.Flags(), ofTheContext)
	return cmd
}

// withQueue connects to the broker of a Run.
func (n runNamespace) withQueue(cmd *cobra.Command, run string, do func(*runs.Queue) error) error {
	c, namespace, err := n.connect(cmd)
	if err != nil {
		return err
	}
	config, _, err := configOf(cmd, n.cluster)
	if err != nil {
		return err
	}
	q, err := runs.OpenQueue(cmd.Context(), c, forwardBy(config), client.ObjectKey{Namespace: namespace, Name: run})
	if err != nil {
		return err
	}
	defer q.Close()
	return do(q)
}

// forwardBy forwards ports as kubectl does.
func forwardBy(config *rest.Config) runs.Forward {
	return func(ctx context.Context, namespace, pod string, port int) (string, func(), error) {
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return "", nil, err
		}
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			return "", nil, err
		}
		path := typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
		ctx, stop := context.WithCancel(ctx)
		ready := make(chan struct{})
		dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, path)
		ports, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, io.Discard)
		if err != nil {
			stop()
			return "", nil, err
		}
		ended := make(chan error, 1)
		go func() { ended <- ports.ForwardPorts() }()
		select {
		case err := <-ended:
			stop()
			return "", nil, errors.Join(err, ctx.Err())
		case <-ready:
		}
		local, err := ports.GetPorts()
		if err != nil {
			stop()
			return "", nil, err
		}
		return fmt.Sprintf("localhost:%d", local[0].Local), stop, nil
	}
}
