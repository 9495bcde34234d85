// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/images"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

func imagesCommand() *cobra.Command {
	var b bundle
	var o output
	var kubernetes, mirror, secret string
	cmd := &cobra.Command{
		Use:     "images",
		Example: "  mlbatch images\n  mlbatch images --mirror registry.example.com/mlbatch",
		Short:   "List the images of the platform, or copy them to another registry",
		Long: "List the images that the platform pulls with these values, in its own pods and in those of teams. With --mirror, copy\n" +
			"them to a folder of another registry, with the credentials of docker login, and print the values with which the\n" +
			"platform pulls them from there. No cluster is needed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, registry, err := b.images(kubernetes)
			if err == nil && mirror != "" {
				return mirrorTo(cmd, strings.TrimSuffix(mirror, "/"), secret, all)
			}
			if err == nil && registry != "" {
				all, err = images.From(registry, all)
			}
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return o.print(out, "ImageList", printing.Items[images.Image]{Items: all}, func() error { return printImages(out, all) })
		},
	}
	b.bind(cmd.Flags())
	cmd.Flags().StringVar(&kubernetes, "kube-version", "", "version of Kubernetes, such as 1.33 (default: all that are supported, which are more images)")
	cmd.Flags().StringVar(&mirror, "mirror", "", "copy the images to this REGISTRY/FOLDER")
	cmd.Flags().StringVar(&secret, "pull-secret", "", "Secret with which the cluster pulls from --mirror, in the platform's namespace")
	o.bindTable(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("mirror", "output")
	return cmd
}

var minorVersion = regexp.MustCompile(`^v?(\d+\.\d+)(\.|$)`)

// minorOf returns the minor version of Kubernetes, such as 1.33, that a flag names.
func minorOf(flag string, versions setup.Versions) (string, error) {
	minor := minorVersion.FindStringSubmatch(flag)
	if minor == nil {
		return "", fmt.Errorf("--kube-version %s is not a version of Kubernetes: use one such as 1.33", flag)
	}
	if !chartutil.IsCompatibleRange(versions.Supported.Kubernetes, minor[1]+".0") {
		return "", fmt.Errorf("the platform does not run on Kubernetes %s, but on %s", minor[1], versions.Supported.Kubernetes)
	}
	return minor[1], nil
}

// images returns the images of the platform with these charts and values, and the registry from which
// the values pull all of them, if there is one.
func (n bundle) images(kubernetes string) (all []images.Image, registry string, err error) {
	versions, err := setup.Load()
	if err == nil && kubernetes != "" {
		kubernetes, err = minorOf(kubernetes, versions)
	}
	if err != nil {
		return nil, "", err
	}
	platform := helmrelease.Release{Name: "mlbatch", Profiles: n.profiles, Values: n.values, Set: n.set}
	if err := n.findCharts(&platform); err != nil {
		return nil, "", err
	}
	archive, err := platform.Fetch()
	if err != nil {
		return nil, "", err
	}
	values, err := platform.MergedValues()
	if err != nil {
		return nil, "", err
	}
	if values, err = platform.AllValues(archive, values); err != nil {
		return nil, "", fmt.Errorf("the chart does not take these values: %w", err)
	}
	all, err = images.Of(values, versions, kubernetes)
	return all, images.Registry(values), err
}

func printImages(out io.Writer, all []images.Image) error {
	rows := [][]string{{"PART", "IMAGE", "WHAT"}}
	for _, image := range all {
		rows = append(rows, []string{image.Part, image.Reference, image.Title})
	}
	return printing.Table(out, rows)
}

func mirrorTo(cmd *cobra.Command, folder, secret string, all []images.Image) error {
	mirror := images.Mirror{Folder: folder, Progress: printing.NewLines(cmd.ErrOrStderr())}
	if err := mirror.Copy(cmd.Context(), all); err != nil {
		return err
	}
	return printing.YAML(cmd.OutOrStdout(), images.Values(folder, secret))
}
