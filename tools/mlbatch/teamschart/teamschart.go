// SPDX-License-Identifier: Apache-2.0

// Package teamschart answers: what does the chart of the teams make of values, or why does it refuse them? It
// asks no cluster.
package teamschart

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/mlbatch/mlbatch/charts"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// Chart is the chart of the teams.
type Chart struct{ loaded *chart.Chart }

// Load returns the chart of this release.
func Load() (Chart, error) {
	const folder = "teams"
	var files []*loader.BufferedFile
	err := fs.WalkDir(charts.Teams, folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts.Teams, path)
		files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(path, folder+"/"), Data: data})
		return err
	})
	if err != nil {
		return Chart{}, fmt.Errorf("cannot read the chart of the teams: %w", err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return Chart{}, fmt.Errorf("cannot read the chart of the teams: %w", err)
	}
	return Chart{loaded}, nil
}

// Whole adds the chart's defaults to the values of a file.
func (c Chart) Whole(values map[string]any) (map[string]any, error) {
	whole, err := chartutil.CoalesceValues(c.loaded, values)
	if err != nil {
		return nil, fmt.Errorf("cannot add the defaults of the chart: %w", err)
	}
	return whole, nil
}

// Render returns the manifests that the chart makes of the values of a file, one template after the other. The
// error is the sentence with which the chart refuses them.
func (c Chart) Render(values map[string]any) ([]string, error) {
	options := chartutil.ReleaseOptions{Name: "teams", Namespace: helmrelease.DefaultNamespace, Revision: 1, IsInstall: true}
	whole, err := chartutil.ToRenderValues(c.loaded, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, errors.New(helmrelease.Explain(err))
	}
	rendered, err := engine.Render(c.loaded, whole)
	if err != nil {
		return nil, errors.New(helmrelease.Explain(err))
	}
	var manifests []string
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".yaml") {
			manifests = append(manifests, rendered[name])
		}
	}
	return manifests, nil
}
