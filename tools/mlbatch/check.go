// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clustercheck"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// checker has the flags of mlbatch check.
type checker struct {
	installation
	output output
	failOn string
}

func checkCommand() *cobra.Command {
	var c checker
	cmd := &cobra.Command{
		Use:     "check",
		Example: "  mlbatch check\n  mlbatch check --fail-on warning",
		Short:   "Find what is wrong with a cluster: its platform, queues, quota, nodes and work",
		Long: "Find what is wrong with a cluster (docs/check.md lists all findings). It reads one list a kind, and changes nothing.\n" +
			"On a cluster without the platform it also says what 'mlbatch install' would refuse. Exit status: 0 if nothing as bad\n" +
			"as --fail-on was found, 3 if something was, 1 if the command could not look. What you may not read is named on\n" +
			"standard error, and not checked.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	bindCluster(flags, &c.cluster)
	flags.StringVarP(&c.namespace, "namespace", "n", "mlbatch-system", "namespace of the operators, before an installation")
	flags.StringArrayVar(&c.profiles, "profile", nil, "values for a kind of cluster, before an installation; may be repeated")
	flags.StringArrayVarP(&c.values, "values", "f", nil, "file with values of the platform, before an installation; may be repeated")
	flags.StringVar(&c.charts, "charts", "", "folder with packaged charts, or oci://REGISTRY/FOLDER, before an installation (default: dist of this checkout)")
	c.output.bindTable(flags, "wide")
	flags.StringVar(&c.failOn, "fail-on", "error", "error, warning or note: exit with status 3 if there is a finding as bad as this, or worse")
	return cmd
}

func (c checker) run(cmd *cobra.Command) error {
	bad := checkup.Severity(c.failOn)
	if !slices.Contains(checkup.Severities, bad) {
		return fmt.Errorf("unknown severity %q: use error, warning or note", c.failOn)
	}
	report, err := c.report(cmd)
	if err != nil {
		return err
	}
	printNotes(cmd.ErrOrStderr(), report.Unknown)
	if len(report.Findings) == 0 {
		of := ""
		if len(report.Unknown) > 0 {
			of = " in what could be read"
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was found"+of)
	}
	out := cmd.OutOrStdout()
	err = c.output.print(out, "Check", report, func() error {
		if len(report.Findings) == 0 {
			return nil
		}
		return clustercheck.WriteTable(out, report, c.output.format == "wide")
	})
	if err == nil && report.Has(bad) {
		return somethingFound
	}
	return err
}

// report looks at the cluster and, if it does not have the platform, at what install looks at.
func (c checker) report(cmd *cobra.Command) (checkup.Report, error) {
	config, _, err := configOf(cmd, c.cluster)
	if err != nil {
		return checkup.Report{}, err
	}
	scheme, err := runs.Scheme()
	if err != nil {
		return checkup.Report{}, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme, Mapper: clustercheck.Mapper()})
	if err != nil {
		return checkup.Report{}, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	objects, err := clustercheck.Read(cmd.Context(), api, time.Now())
	if err != nil {
		return checkup.Report{}, err
	}
	report := checkup.Find(objects)
	if report.Installed == nil || *report.Installed {
		return report, nil
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "the cluster does not have the platform: this is what 'mlbatch install' looks at, too")
	if objects.Install.Problems, objects.Install.Unusual, err = c.beforeInstall(cmd.Context()); err != nil {
		objects.Unread["install"] = "cannot see what 'mlbatch install' would say: " + printing.OneLineError(err).Error()
	}
	return checkup.Find(objects), nil
}

func (c checker) beforeInstall(ctx context.Context) (problems, unusual []string, err error) {
	platform := c.platform()
	platform.Profiles, platform.Values = c.profiles, c.values
	if err := c.findCharts(&platform); err != nil {
		return nil, nil, err
	}
	i := c.installer
	i.Cluster, i.Platform = c.cluster, platform
	return i.Check(ctx)
}
