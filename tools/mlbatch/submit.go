// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// submission has the flags of mlbatch submit.
type submission struct {
	files, assignments       []string
	cluster                  access.Cluster
	namespace                string
	dryRun, wait, skipChecks bool
}

func submitCommand(version string) *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit --filename settings.yaml",
		Short: "Submit a training job to its team's queue",
		Long: "Submit the training job that a settings file describes, as the pytorchjob-generator renders it. A job that its\n" +
			"queue can never admit is refused with the reason.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd, version) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&s.files, "filename", "f", nil, "settings file, or - for standard input; may be repeated, later files override earlier ones")
	flags.StringArrayVar(&s.assignments, "set", nil, "one setting, such as numPods=2; overrides files")
	flags.StringVarP(&s.namespace, "namespace", "n", "", "namespace of the team (default: the one in the settings, or else in the context)")
	bindCluster(flags, &s.cluster)
	flags.BoolVar(&s.dryRun, "dry-run", false, "run the checks, print the AppWrapper, and submit nothing")
	flags.BoolVar(&s.skipChecks, "skip-checks", false, "submit even if the job can never be admitted; the reason is printed as a note")
	flags.BoolVar(&s.wait, "wait", false, "print the job's progress until it ends; fail unless it succeeds")
	return cmd
}

func (s submission) run(cmd *cobra.Command, version string) error {
	settings, err := submit.Settings(s.files, s.assignments, cmd.InOrStdin())
	if err != nil {
		return err
	}
	job, err := submit.New(version, settings)
	if err != nil {
		return err
	}
	c, current, err := connect(cmd, s.cluster)
	if err != nil {
		return err
	}
	if err := job.In(s.namespace, current); err != nil {
		return err
	}
	return s.submit(cmd.Context(), cmd, c, job)
}

func (s submission) submit(ctx context.Context, cmd *cobra.Command, c client.WithWatch, job submit.Job) error {
	err := job.Check(ctx, c, cmd.ErrOrStderr())
	if errors.Is(err, submit.ErrNeverAdmitted) {
		if !s.skipChecks {
			return fmt.Errorf("%w; use --skip-checks to submit it anyway", err)
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", err)
		err = nil
	}
	if err != nil {
		return err
	}
	if s.dryRun {
		fmt.Fprint(cmd.OutOrStdout(), job.Manifest)
		return nil
	}
	if err := job.Create(ctx, c, cmd.OutOrStdout()); err != nil || !s.wait {
		return err
	}
	return job.Wait(ctx, c, cmd.OutOrStdout())
}

// connect returns a client and the namespace of the kubeconfig's context.
func connect(cmd *cobra.Command, cluster access.Cluster) (client.WithWatch, string, error) {
	config, namespace, err := configOf(cmd, cluster)
	if err != nil {
		return nil, "", err
	}
	scheme, err := runs.Scheme()
	if err != nil {
		return nil, "", err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return c, namespace, nil
}

// configOf returns how to connect to the cluster, and the namespace of the kubeconfig's context.
func configOf(cmd *cobra.Command, cluster access.Cluster) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cluster.Kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: cluster.Context})
	restConfig, err := config.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", access.NoCluster(rules)
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot find the cluster: check --kubeconfig and --context: %w", err)
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the namespace of the context: %w", err)
	}
	restConfig.WarningHandler = rest.NewWarningWriter(cmd.ErrOrStderr(), rest.WarningWriterOptions{})
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted(cmd.Context(), next) })
	return restConfig, namespace, nil
}
