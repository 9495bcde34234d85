// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
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
