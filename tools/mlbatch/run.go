// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

func runCommand(version string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Submit, watch and end Runs of Applications (codeflare.dev)",
	}
	cmd.AddCommand(planCommand(), submitRunsCommand(), oldSpelling(listCommand()),
		ofRuns(statusOfWorkCommand()), ofRuns(logsOfWorkCommand()), ofRuns(cancelWorkCommand()), ofRuns(retryWorkCommand(version)))
	return cmd
}

// oldSpelling is that of a general verb, for a release. It names the new one.
func oldSpelling(cmd *cobra.Command) *cobra.Command {
	do, verb := cmd.RunE, cmd.Name()
	cmd.Hidden = true
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		err := do(cmd, names)
		if err == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "note: write 'mlbatch %s': 'mlbatch run %s' is its old spelling\n", strings.Join(append([]string{verb}, names...), " "), verb)
		}
		return err
	}
	return cmd
}

// ofRuns is the old spelling of a verb about one piece of work: it takes a Run only, and does not ask.
func ofRuns(cmd *cobra.Command) *cobra.Command {
	cmd = oldSpelling(cmd)
	do := cmd.RunE
	cmd.Args, cmd.ValidArgsFunction = oneRun, nil
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "worker" {
			name = "rank"
		}
		return pflag.NormalizedName(name)
	})
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if yes := cmd.Flags().Lookup("yes"); yes != nil {
			_ = yes.Value.Set("true")
		}
		return do(cmd, []string{"run/" + names[0]})
	}
	return cmd
}

// someFiles is an error without a file.
func someFiles(advice string) cobra.PositionalArgs {
	return func(_ *cobra.Command, files []string) error {
		if len(files) == 0 {
			return errors.New(advice)
		}
		return nil
	}
}

// printers print plans, by the name of the format.
var printers = map[string]func(io.Writer, []runs.Plan) error{"yaml": runs.WriteYAML, "json": runs.WriteJSON}

func printNotes(progress io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(progress, "note:", printing.OneLine(note))
	}
}

func planCommand() *cobra.Command {
	var p planning
	var o output
	cmd := &cobra.Command{
		Use:     "plan FILE…",
		Example: "  mlbatch run plan application.yaml run.yaml --offline",
		Short:   "Print the AppWrappers that Runs become",
		Long: "Print the AppWrapper of each Run in the files, for 'kubectl apply --server-side'. The files have the Runs and what they\n" +
			"need: Applications, DataSets and RunSizeConfigurations. The file - is standard input. What the files lack comes from the\n" +
			"cluster. Without a cluster, or with --offline, the files have all, and sizes are the default ones unless they are\n" +
			"in them.\n" +
			"Nothing is created: the manifests are judged as an API server judges them.",
		Args: someFiles("name the files of the Runs: mlbatch run plan FILE…"),
		RunE: func(cmd *cobra.Command, files []string) error {
			manifests, err := runs.Read(files, cmd.InOrStdin(), p.where.name)
			if err != nil {
				return err
			}
			manifests.GPUResourceName = p.gpus
			plans, notes, err := p.plan(cmd, manifests)
			if err != nil {
				return err
			}
			printNotes(cmd.ErrOrStderr(), notes)
			return printers[o.format](cmd.OutOrStdout(), plans)
		},
	}
	o.bind(cmd.Flags(), "yaml", "json")
	cmd.Flags().BoolVar(&p.offline, "offline", false, "ask no cluster")
	bindGPUs(cmd.Flags(), &p.gpus)
	p.where.bind(cmd.Flags(), "namespace of objects that name none (default: the one in the context; without a cluster, none is written)")
	return cmd
}

// planning has the flags of mlbatch run plan.
type planning struct {
	where   runNamespace
	offline bool
	gpus    string
}

// bindGPUs adds the flag for clusters on which sizes mean other devices.
func bindGPUs(flags *pflag.FlagSet, name *string) {
	flags.StringVar(name, "gpu-resource-name", "", "resource that sizes mean by gpu, global.gpuResourceName of the platform (default: nvidia.com/gpu)")
}

func (p planning) plan(cmd *cobra.Command, manifests runs.Manifests) (plans []runs.Plan, notes []string, err error) {
	if p.offline {
		return manifests.Plan()
	}
	c, namespace, err := p.where.connect(cmd)
	if errors.Is(err, access.ErrNone) {
		return manifests.Plan()
	}
	if err != nil {
		return nil, nil, err
	}
	if manifests, err = manifests.In(namespace); err != nil {
		return nil, nil, err
	}
	return manifests.PlanOn(cmd.Context(), c)
}
