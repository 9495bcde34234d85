// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Submit, watch and end Runs of Applications (codeflare.dev)",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return errors.New("say what to do: see 'mlbatch run --help'") },
	}
	cmd.AddCommand(planCommand(), submitRunsCommand(), listRunsCommand(), statusCommand(), logsCommand(), cancelCommand(), retryCommand())
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
		fmt.Fprintln(progress, "note:", note)
	}
}

func planCommand() *cobra.Command {
	var format, namespace string
	cmd := &cobra.Command{
		Use:   "plan FILE…",
		Short: "Print the AppWrappers that Runs become, without a cluster",
		Long: "Print the AppWrapper of each Run in the files, as 'kubectl apply' takes it. The files have the Runs and what they\n" +
			"need: Applications, DataSets and, instead of the default sizes, RunSizeConfigurations. The file - is standard input.\n" +
			"Nothing is asked of a cluster: the manifests are judged as an API server judges them.",
		Args: someFiles("name the files of the Runs: mlbatch run plan FILE…"),
		RunE: func(cmd *cobra.Command, files []string) error {
			printAs, known := printers[format]
			if !known {
				return fmt.Errorf("unknown output format %q: use yaml or json", format)
			}
			manifests, err := runs.Read(files, cmd.InOrStdin(), namespace)
			if err != nil {
				return err
			}
			plans, notes, err := manifests.Plan()
			if err != nil {
				return err
			}
			printNotes(cmd.ErrOrStderr(), notes)
			return printAs(cmd.OutOrStdout(), plans)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "yaml", "yaml or json")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of objects that name none (default: none is written)")
	return cmd
}
