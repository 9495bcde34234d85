// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// where has the flags that select the cluster and the namespaces on it.
type where struct {
	cluster                   access.Cluster
	namespace, teamsNamespace string
}

func (w *where) bind(flags *pflag.FlagSet) {
	bindCluster(flags, &w.cluster)
	flags.StringVarP(&w.namespace, "namespace", "n", helmrelease.DefaultNamespace, "namespace of the operators, and of both releases")
	flags.StringVar(&w.teamsNamespace, "teams-namespace", "", "namespace of the release of the teams (default: the same as --namespace)")
}

func bindCluster(flags *pflag.FlagSet, cluster *access.Cluster) {
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "kubeconfig file (default: as kubectl finds it)")
	flags.StringVar(&cluster.Context, "context", "", "context in the kubeconfig (default: the current one)")
	flags.StringVar(&cluster.As, "as", "", "user to impersonate, as kubectl does")
	flags.StringArrayVar(&cluster.Groups, "as-group", nil, "group to impersonate; may be repeated")
}

// platform and teams return the two releases, without their charts.
func (w where) platform() helmrelease.Release {
	return helmrelease.Release{Name: "mlbatch", Namespace: w.namespace}
}

func (w where) teams() helmrelease.Release {
	return helmrelease.Release{Name: "teams", Namespace: cmp.Or(w.teamsNamespace, w.namespace)}
}

// bundle has the flags that select the charts and the values of the platform.
type bundle struct {
	charts                string
	plainHTTP             bool
	profiles, values, set []string
}

func (n *bundle) bind(flags *pflag.FlagSet) {
	flags.StringArrayVar(&n.profiles, "profile", nil, "values for a kind of cluster: "+strings.Join(setup.Profiles(), ", ")+"; may be repeated")
	flags.StringArrayVarP(&n.values, "values", "f", nil, "file with values of the platform; overrides profiles; may be repeated, later files override earlier ones")
	flags.StringArrayVar(&n.set, "set", nil, "one value of the platform, such as kueue.enabled=false; overrides files")
	flags.StringVar(&n.charts, "charts", "", "folder with packaged charts, or oci://REGISTRY/FOLDER (default: dist of this checkout)")
	flags.BoolVar(&n.plainHTTP, "plain-http", false, "the OCI registry has no TLS")
}

// installation has the flags of install and upgrade.
type installation struct {
	where
	bundle
	installer install.Installer
	people    []string
}

func (n *installation) bind(flags *pflag.FlagSet) {
	n.where.bind(flags)
	n.bundle.bind(flags)
	flags.StringArrayVar(&n.people, "teams", nil, "values file of the teams, for the second release")
	flags.BoolVar(&n.installer.TakeOwnership, "take-ownership", false, "adopt objects owned by another release or by none")
	flags.BoolVar(&n.installer.ResumeInterrupted, "resume-interrupted", false, "go on although another command began to change a release and has not finished: it was killed")
	flags.BoolVar(&n.installer.DryRun, "dry-run", false, "run the checks and change nothing")
	flags.DurationVar(&n.installer.Timeout, "timeout", helmrelease.DefaultTimeout, "how long to wait for pods, and for each webhook")
}

func installCommand() *cobra.Command {
	var n installation
	cmd := &cobra.Command{
		Use:     "install",
		Example: "  mlbatch install --teams teams.yaml",
		Short:   "Install the platform, and the teams, on a cluster",
		Long: "Install the platform on the cluster of your kubeconfig and, with --teams, the teams that share it. Known problems are\n" +
			"reported before anything is changed. The command waits until all pods are ready and all webhooks answer. If\n" +
			"interrupted, run it again: it resumes. It changes nothing if there is nothing to do. helm install does the same in\n" +
			"two steps (docs/install.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return n.run(cmd, install.Installer.Install)
		},
	}
	n.bind(cmd.Flags())
	return cmd
}

func upgradeCommand() *cobra.Command {
	var n installation
	var diff bool
	cmd := &cobra.Command{
		Use:     "upgrade",
		Example: "  mlbatch upgrade --teams teams.yaml --diff",
		Short:   "Upgrade the platform and the teams, or change their values, without stopping running work",
		Long: "Upgrade the platform on the cluster of your kubeconfig to the charts of this command, or change its values.\n" +
			"Current values are kept unless you give new ones, as with helm upgrade --reset-then-reuse-values. The release of the\n" +
			"teams is upgraded too; a file given with --teams replaces all its values. Running work is not stopped. Downgrading to\n" +
			"an older minor version is refused.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if diff {
				n.installer.Diff, n.installer.DryRun = cmd.OutOrStdout(), true
			}
			return n.run(cmd, install.Installer.Upgrade)
		},
	}
	n.bind(cmd.Flags())
	cmd.Flags().BoolVar(&diff, "diff", false, "run the checks, print what would change in the objects of both releases, and change nothing")
	cmd.Flags().BoolVar(&n.installer.ResetValues, "reset-values", false, "discard the platform's current values")
	return cmd
}

func (n installation) run(cmd *cobra.Command, do func(install.Installer, context.Context) ([]helmrelease.Outcome, error)) error {
	platform, teams := n.platform(), n.teams()
	platform.Profiles, platform.Values, platform.Set, teams.Values = n.profiles, n.values, n.set, n.people
	if err := n.findCharts(&platform, &teams); err != nil {
		return err
	}
	i := n.installer
	i.Cluster, i.Platform, i.Progress = n.cluster, platform, cmd.ErrOrStderr()
	if len(n.people) > 0 || cmd.Name() == "upgrade" {
		i.Teams = &teams
	}
	outcomes, err := do(i, cmd.Context())
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if n.installer.DryRun {
			o.Done = "would be " + o.Done
		}
		fmt.Fprintf(cmd.OutOrStdout(), "release %s %s in namespace %s: %s\n", o.Release, o.Version, o.Namespace, o.Done)
	}
	if i.Teams == nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "next: add teams (docs/quota.md) with 'mlbatch upgrade --teams teams.yaml'")
	}
	return nil
}

// findCharts finds the charts of both releases in the same folder or registry.
func (n bundle) findCharts(releases ...*helmrelease.Release) error {
	versions, err := setup.Load()
	if err != nil {
		return err
	}
	from := n.charts
	if from == "" {
		checkout, err := setup.Checkout(".")
		if err != nil {
			return errors.New("cannot find the charts: this folder is not in a checkout of MLBatch; name a folder or an oci:// registry with --charts")
		}
		from = filepath.Join(checkout, "dist")
	}
	for _, r := range releases {
		if r.Chart, err = helmrelease.FindChart(from, r.Name, versions.Version); err != nil {
			return err
		}
		r.PlainHTTP = n.plainHTTP
	}
	return nil
}
