// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
	"github.com/mlbatch/mlbatch/tools/mlbatch/pack"
)

// wrapping has the flags of mlbatch pack.
type wrapping struct {
	options   pack.Options
	podSets   []string
	recursive bool
	// fromMCAD and fromTorchX are other formats than manifests.
	fromMCAD, fromTorchX bool
	output               output
}

func packCommand() *cobra.Command {
	var w wrapping
	cmd := &cobra.Command{
		Use:     "pack FILE…",
		Example: "  mlbatch pack job.yaml service.yaml",
		Short:   "Wrap manifests in one AppWrapper, without a cluster",
		Long: "Print the AppWrapper that wraps all objects in the files, for 'kubectl apply --server-side'. The files have YAML or\n" +
			"JSON, in one document or more; a folder stands for its .yaml, .yml and .json files, and - for standard input. Comments\n" +
			"are not kept. If one object cannot be wrapped, nothing is printed but the reasons.",
		Args: someFiles("name the files to wrap, or - for standard input: mlbatch pack FILE…"),
		RunE: func(cmd *cobra.Command, files []string) error { return w.run(cmd, files) },
	}
	flags := cmd.Flags()
	flags.StringVar(&w.options.Name, "name", "", "name of the AppWrapper (default: that of the first object that makes pods)")
	flags.StringVarP(&w.options.Namespace, "namespace", "n", "", "namespace of the AppWrapper (default: that of the objects, if they name one)")
	flags.StringVar(&w.options.Queue, "queue", "", "queue of the AppWrapper (default: none is written)")
	flags.StringVar(&w.options.Priority, "priority", "", "PriorityClass of all pods")
	flags.StringArrayVar(&w.podSets, "pod-set", nil, "pods of a kind that MLBatch does not know: KIND/NAME:PATH=REPLICAS, such as ReplicationController/web:spec.template=2; may be repeated")
	flags.BoolVar(&w.options.PodGroup, "pod-group", false, "let all pods start together or none, with a PodGroup")
	flags.BoolVar(&w.fromMCAD, "from-mcad", false, "take one AppWrapper of MCAD (v1beta1), and wrap its objects")
	flags.BoolVar(&w.fromTorchX, "from-torchx", false, "take what 'torchx run --dryrun' prints for Kubernetes, and wrap what it would create")
	cmd.MarkFlagsMutuallyExclusive("from-mcad", "from-torchx")
	flags.BoolVarP(&w.recursive, "recursive", "R", false, "take the manifests in folders of folders, too")
	w.output.bind(flags, "yaml", "json")
	return cmd
}

// appWrapperFormats encode an AppWrapper.
var appWrapperFormats = map[string]func(*v1beta2.AppWrapper) ([]byte, error){"yaml": pack.YAML, "json": pack.JSON}

func (w wrapping) run(cmd *cobra.Command, files []string) error {
	for _, text := range w.podSets {
		podSet, err := pack.ParsePodSet(text)
		if err != nil {
			return err
		}
		w.options.PodSets = append(w.options.PodSets, podSet)
	}
	packed, err := w.pack(files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if err := refused(cmd.ErrOrStderr(), packed.Refusals); err != nil {
		return err
	}
	text, err := appWrapperFormats[w.output.format](packed.AppWrapper)
	if err != nil {
		return fmt.Errorf("cannot print AppWrapper %s: %w", packed.AppWrapper.Name, err)
	}
	for _, note := range packed.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// pack reads the files in the format that the flags say.
func (w wrapping) pack(files []string, stdin io.Reader) (pack.Packed, error) {
	if w.fromTorchX {
		if len(files) > 1 {
			return pack.Packed{}, errors.New("--from-torchx takes one file: convert them one after the other")
		}
		dump, err := manifests.Text(files[0], stdin)
		return pack.FromTorchX(files[0], dump, w.options), err
	}
	documents, err := manifests.Read(files, stdin, w.recursive)
	if w.fromMCAD {
		return pack.FromMCAD(documents, w.options), err
	}
	return pack.Pack(documents, w.options), err
}

// refused returns a single refusal as the error. It prints several, a line each.
func refused(progress io.Writer, all []pack.Refusal) error {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return errors.New(all[0].String())
	}
	for _, r := range all {
		fmt.Fprintln(progress, r)
	}
	return fmt.Errorf("nothing is packed, for these %d reasons", len(all))
}
