// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clustercheck"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamschart"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsdiff"
)

// teamComparer has the flags of mlbatch team diff.
type teamComparer struct {
	teamFlags
	cluster access.Cluster
}

func teamDiffCommand() *cobra.Command {
	var t teamComparer
	cmd := &cobra.Command{
		Use:     "diff",
		Example: "  mlbatch team diff --file teams.yaml",
		Short:   "Compare the file with the cluster: does it have what the file says?",
		Long: "Compare the file with the cluster: namespaces, queues, cohorts, flavors and quota of the chart teams, and slack queues.\n" +
			"It reads five lists and changes nothing. Members, limits, priorities, network policies and what slack queues lend at\n" +
			"most are not compared. Exit status: 0 if the cluster has what the file says, 3 if not, 1 if the command could not look.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	bindCluster(cmd.Flags(), &t.cluster)
	return t.bind(cmd)
}

func (t teamComparer) run(cmd *cobra.Command) error {
	wanted, err := t.wanted()
	if err != nil {
		return err
	}
	cluster, err := t.read(cmd)
	if err != nil {
		return err
	}
	report := teamsdiff.Compare(cluster, wanted)
	printNotes(cmd.ErrOrStderr(), report.Notes)
	if !report.Found() {
		fmt.Fprintln(cmd.ErrOrStderr(), "the cluster has what", t.path, "says")
	}
	out := cmd.OutOrStdout()
	err = t.output.print(out, "TeamDiff", report, func() error { return report.WriteTable(out) })
	if err == nil && report.Found() {
		return somethingFound
	}
	return err
}

// wanted is what the chart makes of the file.
func (t teamComparer) wanted() ([]teamsdiff.Object, error) {
	file, err := t.parse()
	if err != nil {
		return nil, err
	}
	chart, err := teamschart.Load()
	if err != nil {
		return nil, err
	}
	manifests, err := chart.Render(file.Values())
	if err != nil {
		return nil, fmt.Errorf("the chart refuses %s: %w", t.path, err)
	}
	return teamsdiff.Wanted(manifests)
}

func (t teamComparer) read(cmd *cobra.Command) ([]teamsdiff.Object, error) {
	config, _, err := configOf(cmd, t.cluster)
	if err != nil {
		return nil, err
	}
	scheme, err := runs.Scheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme, Mapper: clustercheck.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return teamsdiff.Read(cmd.Context(), api)
}
