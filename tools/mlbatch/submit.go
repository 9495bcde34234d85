// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// submission has the flags of mlbatch submit.
type submission struct {
	files, assignments       []string
	folder, array            string
	cluster                  access.Cluster
	namespace                string
	print                    bool
	dryRun, wait, skipChecks bool
}

func submitCommand(version string) *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit [SCRIPT | SETTINGS.yaml] [flags] [-- ARGUMENT…]",
		Short: "Submit a training job to its team's queue",
		Long: "Submit a script of this machine, which the job carries along, or the training job that a settings file describes,\n" +
			"as the pytorchjob-generator renders it. A job that its queue can never admit is refused with the reason.\n\n" +
			"Each node runs one pod. A Python program of one process is run by python3, one of several by torchrun, another\n" +
			"script by itself. It runs in a copy of its folder.",
		Example: "  mlbatch submit train.py --image pytorch/pytorch --gpus 1 -- --epochs 3\n" +
			"  mlbatch submit src/train.py --folder src --image pytorch/pytorch --gpus 8 --nodes 2\n" +
			"  mlbatch submit --filename settings.yaml",
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, version, args) },
	}
	flags := cmd.Flags()
	s.bindSettings(flags)
	flags.StringVar(&s.folder, "folder", "", "folder with the script and what it imports, at most 512 KiB; without hidden files")
	flags.StringVar(&s.array, "array", "", "run a script once per number, such as 0-19, or 0-19%4: so many at the same time. MLBATCH_ARRAY_INDEX has the number")
	flags.BoolVar(&s.print, "print", false, "print the AppWrapper, and ask no cluster")
	flags.BoolVar(&s.dryRun, "dry-run", false, "run the checks, print the AppWrapper, and submit nothing")
	flags.BoolVar(&s.wait, "wait", false, "print the job's progress until it ends; fail unless it succeeds")
	return cmd
}

// bindSettings adds the flags that say what a job needs, and where it goes.
func (s *submission) bindSettings(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&s.files, "filename", "f", nil, "settings file, or - for standard input; may be repeated, later files override earlier ones")
	flags.StringArrayVar(&s.assignments, "set", nil, "one setting, such as numPods=2; overrides files")
	for _, f := range shorthands {
		flags.String(f.name, "", f.usage)
	}
	flags.StringVarP(&s.namespace, "namespace", "n", "", "namespace of the team (default: the one in the settings, or else in the context)")
	flags.BoolVar(&s.skipChecks, "skip-checks", false, "submit even if the job can never be admitted; the reason is printed as a note")
	bindCluster(flags, &s.cluster)
}

// shorthands are flags for settings. They override files and --set.
var shorthands = []struct {
	name, setting, usage string
	value                func(string) any
}{
	{"name", "jobName", "name of the job (default: the script's name and five random characters)", submit.Text},
	{"image", "containerImage", "image of the containers", submit.Text},
	{"gpus", "numGpusPerPod", "GPUs of each node (default 0)", submit.Value},
	{"nodes", "numPods", "number of nodes (default 1)", submit.Value},
	{"cpus", "numCpusPerPod", "CPUs of each node (default 1; for a script with GPUs 4 per GPU)", submit.Value},
	{"memory", "totalMemoryPerPod", "memory of each node, such as 16Gi (default 1Gi; for a script 4Gi, or 16Gi per GPU)", submit.Value},
}

func (s submission) run(cmd *cobra.Command, version string, args []string) error {
	jobs, err := s.jobs(cmd, version, args)
	if err != nil {
		return err
	}
	if s.print {
		return s.printed(cmd.OutOrStdout(), jobs)
	}
	c, current, err := connect(cmd, s.cluster)
	if err != nil {
		return err
	}
	for i := range jobs {
		if err := jobs[i].In(s.namespace, current); err != nil {
			return err
		}
	}
	return s.submit(cmd.Context(), cmd, c, jobs)
}

// printed prints jobs, with a namespace if one was named.
func (s submission) printed(out io.Writer, jobs []submit.Job) error {
	for i := range jobs {
		if s.namespace == "" {
			break
		}
		if err := jobs[i].In(s.namespace, ""); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, manifestOf(jobs))
	return err
}

func manifestOf(jobs []submit.Job) string {
	var all []string
	for _, job := range jobs {
		all = append(all, strings.TrimPrefix(job.Manifest, "---\n"))
	}
	return strings.Join(all, "---\n")
}

// jobs renders the job of a script, of settings, or of both, or those of an array.
func (s submission) jobs(cmd *cobra.Command, version string, args []string) ([]submit.Job, error) {
	if err := unset(cmd); err != nil {
		return nil, err
	}
	script, arguments, err := scriptOf(args, cmd.ArgsLenAtDash())
	if err != nil {
		return nil, err
	}
	if describes(script) {
		script, s.files = "", append(s.files, script)
	}
	if script == "" && len(s.files) == 0 {
		return nil, errors.New("name a script, or a settings file with --filename")
	}
	settings, err := s.settings(cmd)
	if err != nil {
		return nil, err
	}
	if script != "" {
		return s.program(version, settings, submit.Program{Script: script, Folder: s.folder, Arguments: arguments})
	}
	if s.ofScript() || len(arguments) > 0 {
		return nil, errors.New("--folder, --array and arguments belong to a script: name it first")
	}
	one, err := submit.New(version, settings)
	return []submit.Job{one}, err
}

// unset returns an error for a flag with an empty value, as of a variable that a script has not set: without its array,
// a script would run once.
func unset(cmd *cobra.Command) error {
	for _, f := range []struct{ name, wants string }{{"array", "FIRST-LAST"}, {"folder", "a folder"}, {"namespace", "the namespace of your team"}} {
		if flag := cmd.Flags().Lookup(f.name); flag.Changed && flag.Value.String() == "" {
			return fmt.Errorf("--%s is empty: write %s, or leave it out", f.name, f.wants)
		}
	}
	return nil
}

// describes reports whether a file has settings, and is no script.
func describes(file string) bool {
	extension := filepath.Ext(file)
	return extension == ".yaml" || extension == ".yml"
}

// ofScript reports whether there are flags that need a script.
func (s submission) ofScript() bool { return s.folder != "" || s.array != "" }

// program renders the jobs of a script.
func (s submission) program(version string, settings map[string]any, p submit.Program) (jobs []submit.Job, err error) {
	if s.array != "" {
		if p.Array, err = submit.ParseArray(s.array); err != nil {
			return nil, err
		}
	}
	jobs, err = p.Jobs(version, settings)
	if err == nil && s.wait && len(jobs) > 1 {
		return nil, fmt.Errorf("--wait follows one AppWrapper, and --array %s becomes %d: leave it out, or write %[1]s%%N", s.array, len(jobs))
	}
	return jobs, err
}

// settings are those of files and flags.
func (s submission) settings(cmd *cobra.Command) (map[string]any, error) {
	settings, err := submit.Settings(s.files, s.assignments, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	for _, f := range shorthands {
		if flag := cmd.Flags().Lookup(f.name); flag.Changed {
			settings[f.setting] = f.value(flag.Value.String())
		}
	}
	return settings, nil
}

// scriptOf returns the script and its arguments, which come after --.
func scriptOf(args []string, dash int) (script string, arguments []string, err error) {
	before := args
	if dash >= 0 {
		before, arguments = args[:dash], args[dash:]
	}
	switch {
	case len(before) > 1:
		return "", nil, fmt.Errorf("name one script, and write its arguments after --: mlbatch submit %s -- %s", before[0], strings.Join(before[1:], " "))
	case len(before) == 0:
		return "", arguments, nil
	}
	return before[0], arguments, nil
}

func (s submission) submit(ctx context.Context, cmd *cobra.Command, c client.WithWatch, jobs []submit.Job) error {
	out, first := cmd.OutOrStdout(), jobs[0]
	if s.dryRun {
		err := s.check(ctx, cmd, c, first)
		if err == nil {
			fmt.Fprint(out, manifestOf(jobs))
		}
		return err
	}
	if err := s.create(ctx, cmd, c, first, out); err != nil {
		return err
	}
	for i, job := range jobs[1:] { // they differ from the first in their names only
		if err := job.Create(ctx, c, out); err != nil {
			return fmt.Errorf("%w; %d of %d were submitted: 'mlbatch cancel --array %s' deletes them", err, i+1, len(jobs), job.Array())
		}
	}
	if !s.wait {
		fmt.Fprintln(out, next(jobs))
		return nil
	}
	return first.Wait(ctx, c, out)
}

// next is the command with which a user looks at what was submitted.
func next(jobs []submit.Job) string {
	verb, name := "why", jobs[0].Name()
	if len(jobs) > 1 {
		verb, name = "status", jobs[0].Array()
	}
	return fmt.Sprintf("next: mlbatch %s %s --namespace %s", verb, name, jobs[0].AppWrapper().Namespace)
}

// create creates a job that can be admitted.
func (s submission) create(ctx context.Context, cmd *cobra.Command, c client.Client, job submit.Job, out io.Writer) error {
	if err := s.check(ctx, cmd, c, job); err != nil {
		return err
	}
	return job.Create(ctx, c, out)
}

// check returns an error if the job can never run, and prints notes about what it could not find out.
func (s submission) check(ctx context.Context, cmd *cobra.Command, c client.Client, job submit.Job) error {
	err := job.Check(ctx, c, cmd.ErrOrStderr())
	if !errors.Is(err, submit.ErrNeverAdmitted) {
		return err
	}
	if !s.skipChecks {
		return fmt.Errorf("%w; use --skip-checks to submit it anyway", err)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "note:", err)
	return nil
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
	if err := cluster.Check(); err != nil {
		return nil, "", err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cluster.Kubeconfig
	user := clientcmdapi.AuthInfo{Impersonate: cluster.As, ImpersonateGroups: cluster.Groups}
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: cluster.Context, AuthInfo: user})
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
	restConfig.WarningHandler = rest.NewWarningWriter(cmd.ErrOrStderr(), rest.WarningWriterOptions{Deduplicate: true})
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted(cmd.Context(), next) })
	return restConfig, namespace, nil
}
