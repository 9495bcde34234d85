// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// runSubmission has the flags of mlbatch run submit.
type runSubmission struct {
	where                    runNamespace
	gpus                     string
	dryRun, wait, skipChecks bool
}

func submitRunsCommand() *cobra.Command {
	var s runSubmission
	cmd := &cobra.Command{
		Use:     "submit FILE…",
		Example: "  mlbatch run submit application.yaml run.yaml\n  mlbatch run submit run.yaml --wait",
		Short:   "Submit Runs, and what they need, to a cluster",
		Long: "Create the Runs in the files, and apply the Applications, DataSets and RunSizeConfigurations. What the files lack is\n" +
			"looked up on the cluster. If a Run can never be admitted, or the API server refuses an object, nothing is created.",
		Args: someFiles("name the files of the Runs: mlbatch run submit FILE…"),
		RunE: func(cmd *cobra.Command, files []string) error { return s.run(cmd, files) },
	}
	flags := cmd.Flags()
	s.where.bind(flags, "namespace of the team (default: the one in the files, or else in the context)")
	bindGPUs(flags, &s.gpus)
	flags.BoolVar(&s.dryRun, "dry-run", false, "run the checks, print the AppWrappers, and submit nothing")
	flags.BoolVar(&s.skipChecks, "skip-checks", false, "submit even if a Run cannot be planned or can never be admitted; the reason is printed as a note")
	flags.BoolVar(&s.wait, "wait", false, "print the Runs' progress until they end; fail unless all succeed")
	return cmd
}

func (s runSubmission) run(cmd *cobra.Command, files []string) error {
	// The files are judged before the cluster is looked for.
	manifests, err := runs.Read(files, cmd.InOrStdin(), s.where.name)
	if err != nil {
		return err
	}
	manifests.GPUResourceName = s.gpus
	if s.where.name != "" {
		if err := manifests.Only(s.where.name); err != nil {
			return err
		}
	}
	c, namespace, err := s.where.connect(cmd)
	if err != nil {
		return err
	}
	if manifests, err = manifests.In(namespace); err != nil {
		return err
	}
	return s.submit(cmd.Context(), cmd, c, manifests)
}

func (s runSubmission) submit(ctx context.Context, cmd *cobra.Command, c client.WithWatch, manifests runs.Manifests) error {
	plans, notes, err := manifests.Check(ctx, c)
	if unfit := (runs.Unfit{}); errors.As(err, &unfit) {
		if !s.skipChecks {
			return fmt.Errorf("%w; use --skip-checks to submit it anyway", err)
		}
		notes, err = append(notes, err.Error()), nil
	}
	if err != nil {
		return err
	}
	printNotes(cmd.ErrOrStderr(), notes)
	if s.dryRun {
		return printPlans(cmd.OutOrStdout(), plans)
	}
	created, err := manifests.Submit(ctx, c, cmd.OutOrStdout())
	if err != nil || !s.wait {
		return err
	}
	return runs.Wait(ctx, c, created, cmd.OutOrStdout())
}

func printPlans(out io.Writer, plans []runs.Plan) error {
	if len(plans) == 0 {
		return errors.New("there is no plan without the checks: use 'mlbatch run plan' with files that have all that the Runs need")
	}
	return runs.WriteYAML(out, plans)
}
