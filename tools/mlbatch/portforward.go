// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podforward"
)

func portForwardCommand() *cobra.Command {
	var where runNamespace
	var choice choice
	var listener podforward.Listener
	cmd := aboutWork(&cobra.Command{
		Use:   "port-forward NAME [LOCAL:]REMOTE…",
		Short: "Reach ports of a pod of an AppWrapper, a Run or a job from this machine",
		Long: "Listen on ports of this machine, and pass on connections to the only pod, or to the one with rank 0. --rank and\n" +
			"--pod choose another one. :REMOTE takes any free local port. It ends when it is interrupted, or with the pod.",
		Example: "  mlbatch port-forward notebook 8888\n  mlbatch port-forward train 16006:6006 --rank 1",
	}, &where, func(cmd *cobra.Command, c client.WithWatch, found explain.Objects) error {
		pod, err := choice.pod(cmd, c, found)
		if err != nil {
			return err
		}
		config, _, err := configOf(cmd, where.cluster)
		if err != nil {
			return err
		}
		listener.Out, listener.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
		return podforward.Run(cmd.Context(), config, pod, listener)
	})
	about := cmd.RunE
	cmd.Args = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 || args[0] == "" {
			return errors.New("name the work and its ports: mlbatch port-forward NAME [LOCAL:]REMOTE…")
		}
		listener.Ports = args[1:]
		if err := listener.Check(); err != nil {
			return err
		}
		return about(cmd, args[:1])
	}
	choice.bind(cmd)
	cmd.Flags().StringSliceVar(&listener.Addresses, "address", []string{"localhost"}, "addresses of this machine on which to listen")
	return cmd
}
