// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// values are those that flags with a name have, in any command or in one: COMMAND/FLAG.
func values() map[string][]string {
	severities := make([]string, 0, len(checkup.Severities))
	for _, s := range checkup.Severities {
		severities = append(severities, string(s))
	}
	return map[string][]string{
		"top/by": top.Views(), "usage/by": usage.Dimensions(), "state": work.Stages(), "fail-on": severities,
		"profile": setup.Profiles(), "stop-policy": {"None", "Hold", "HoldAndDrain"},
	}
}

// completing lets a shell complete the values of flags, in a command and all below it.
func completing(cmd *cobra.Command) {
	choices := map[string]cobra.CompletionFunc{"namespace": namespacesOf, "teams-namespace": namespacesOf, "context": contextsOf}
	for at, all := range values() {
		if of, flag, one := strings.Cut(at, "/"); !one {
			choices[at] = cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
		} else if of == cmd.Name() {
			choices[flag] = cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
		}
	}
	if flag := cmd.Flags().Lookup("output"); flag != nil {
		if o, known := flag.Value.(*output); known {
			choices["output"] = cobra.FixedCompletions(o.known, cobra.ShellCompDirectiveNoFileComp)
		}
	}
	for name, choice := range choices {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, choice) // it fails only for flags that are not there
		}
	}
	for _, sub := range cmd.Commands() {
		completing(sub)
	}
}

// namespacesOf are those of the cluster or, for users who may not list them, those of the kubeconfig's contexts.
func namespacesOf(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var n runNamespace
	n.cluster.Kubeconfig, _ = cmd.Flags().GetString("kubeconfig")
	n.cluster.Context, _ = cmd.Flags().GetString("context")
	n.cluster.As, _ = cmd.Flags().GetString("as")
	n.cluster.Groups, _ = cmd.Flags().GetStringArray("as-group")
	ctx, enough := context.WithTimeout(cmd.Context(), 5*time.Second)
	defer enough()
	var names []string
	c, _, err := n.connectReader(cmd)
	if err == nil {
		err = clusterstate.Each(ctx, c, &corev1.NamespaceList{}, func(found *corev1.Namespace) { names = append(names, found.Name) })
	}
	if err != nil {
		names = nil
		for _, known := range contextsIn(cmd).Contexts {
			if known.Namespace != "" {
				names = append(names, known.Namespace)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

func contextsOf(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return slices.Sorted(maps.Keys(contextsIn(cmd).Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// contextsIn is empty if there is none: then nothing is suggested.
func contextsIn(cmd *cobra.Command) *clientcmdapi.Config {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, _ = cmd.Flags().GetString("kubeconfig")
	config, err := rules.Load()
	if err != nil {
		return clientcmdapi.NewConfig()
	}
	return config
}
