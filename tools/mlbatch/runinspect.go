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
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// runNamespace has the flags of all commands that look for Runs on a cluster.
type runNamespace struct {
	cluster access.Cluster
	name    string
}

func (n *runNamespace) bind(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&n.name, "namespace", "n", "", usage)
	bindCluster(flags, &n.cluster)
}

const ofTheContext = "namespace of the Run (default: the one in the context)"

// connect returns a client and the namespace.
func (n runNamespace) connect(cmd *cobra.Command) (client.WithWatch, string, error) {
	c, current, err := connect(cmd, n.cluster)
	return c, cmp.Or(n.name, current), err
}

// orAll is an error if both a namespace and all of them are wanted.
func (n runNamespace) orAll(everywhere bool) error {
	if everywhere && n.name != "" {
		return errors.New("--namespace and --all-namespaces exclude each other: remove one of them")
	}
	return nil
}

// oneRun is an error unless there is one name.
func oneRun(cmd *cobra.Command, names []string) error {
	if len(names) != 1 || names[0] == "" {
		return fmt.Errorf("name one Run: %s NAME", cmd.CommandPath())
	}
	return nil
}

func listRunsCommand() *cobra.Command {
	var where runNamespace
	var everywhere bool
	var o output
	cmd := &cobra.Command{
		Use:     "list",
		Example: "  mlbatch run list --all-namespaces",
		Short:   "List Runs",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := where.orAll(everywhere); err != nil {
				return err
			}
			c, namespace, err := where.connect(cmd)
			if err != nil {
				return err
			}
			if everywhere {
				namespace = ""
			}
			return listRuns(cmd, c, namespace, o)
		},
	}
	flags := cmd.Flags()
	where.bind(flags, "namespace of the Runs (default: the one in the context)")
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "list the Runs of all namespaces")
	o.bindTable(flags)
	return cmd
}

func listRuns(cmd *cobra.Command, c client.Reader, namespace string, o output) error {
	list, err := runs.List(cmd.Context(), c, namespace)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	return o.print(out, "RunList", printing.Items[v1alpha1.Run]{Items: append([]v1alpha1.Run{}, list.Items...)}, func() error {
		if len(list.Items) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "there are no Runs in", cmp.Or(namespace, "any namespace"))
			return nil
		}
		return runs.WriteList(out, list, namespace == "", time.Now())
	})
}

func statusCommand() *cobra.Command {
	var where runNamespace
	var o output
	cmd := &cobra.Command{
		Use:     "status NAME",
		Example: "  mlbatch run status survey",
		Short:   "Say how far a Run is, and why it waits or failed",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, namespace, err := where.connect(cmd)
			if err != nil {
				return err
			}
			return printStatus(cmd, c, client.ObjectKey{Namespace: namespace, Name: names[0]}, o)
		},
	}
	where.bind(cmd.Flags(), ofTheContext)
	o.bindTable(cmd.Flags())
	return cmd
}

func printStatus(cmd *cobra.Command, c client.Reader, key client.ObjectKey, o output) error {
	report, err := runs.Status(cmd.Context(), c, key)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	return o.print(out, "RunStatus", printing.Items[runs.Report]{Items: []runs.Report{report}}, func() error { return runs.WriteStatus(out, report) })
}

func (n runNamespace) openLog(cmd *cobra.Command) (podlogs.Open, error) {
	config, _, err := configOf(cmd, n.cluster)
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		return typed.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
	}, nil
}
