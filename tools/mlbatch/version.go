// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

func versionCommand(own string) *cobra.Command {
	var where runNamespace
	cmd := &cobra.Command{
		Use:     "version",
		Example: "  mlbatch version\n  mlbatch version --context production",
		Short:   "Show the version of this command and that of the cluster's platform",
		Long: "Show the version of this command and that of the cluster's platform. Both work together if they are at most one\n" +
			"minor version apart. Without the right to list Deployments, you see the version of the queues of your namespace.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			fmt.Fprintln(out, "mlbatch ", own)
			theirs, err := where.platformVersion(cmd)
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "note:", err)
				return nil
			}
			fmt.Fprintln(out, "platform", theirs)
			if apart(own, theirs) {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: mlbatch %s and the platform %s are more than one minor version apart: use the mlbatch of release %[2]s, or ask an administrator to upgrade\n", own, theirs)
			}
			return nil
		},
	}
	where.bind(cmd.Flags(), "namespace of the queues of a member (default: the one in the context)")
	return cmd
}

func (n runNamespace) platformVersion(cmd *cobra.Command) (string, error) {
	c, namespace, err := n.connectReader(cmd)
	if err != nil {
		return "", err
	}
	ctx, enough := context.WithTimeout(cmd.Context(), 10*time.Second)
	defer enough()
	return clusterstate.Version(ctx, c, namespace)
}

// apart reports whether two versions differ by more than one minor version. A version that is none is apart from all.
func apart(one, other string) bool {
	a, err1 := version.ParseGeneric(one)
	b, err2 := version.ParseGeneric(other)
	if err1 != nil || err2 != nil || a.Major() != b.Major() {
		return true
	}
	return max(a.Minor(), b.Minor())-min(a.Minor(), b.Minor()) > 1
}
