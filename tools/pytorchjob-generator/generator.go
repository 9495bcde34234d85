// SPDX-License-Identifier: Apache-2.0

// Package generator converts the settings of a training job into an AppWrapper. It embeds
// the chart, so that a program renders the same as helm template.
package generator

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/complaints"
)

// all: includes the files whose names begin with _.
//
//go:embed all:chart
var files embed.FS

// Render returns the manifest of a job. The version is the generator's.
func Render(version string, settings map[string]any) (string, error) {
	c, err := load(version)
	if err != nil {
		return "", err
	}
	options := chartutil.ReleaseOptions{Name: c.Name(), IsInstall: true}
	values, err := chartutil.ToRenderValues(c, settings, options, chartutil.DefaultCapabilities)
	if err != nil {
		return "", sentence(err)
	}
	rendered, err := engine.Render(c, values)
	if err != nil {
		return "", sentence(err)
	}
	return rendered[c.Name()+"/templates/appwrapper.yaml"], nil
}

// AppWrapper decodes the AppWrapper of a manifest.
func AppWrapper(manifest string) (*v1beta2.AppWrapper, error) {
	aw := &v1beta2.AppWrapper{}
	if err := yaml.UnmarshalStrict([]byte(manifest), aw); err != nil {
		return nil, fmt.Errorf("cannot read the rendered job: %w", err)
	}
	return aw, nil
}

func load(version string) (*chart.Chart, error) {
	var all []*loader.BufferedFile
	err := fs.WalkDir(files, "chart", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		all = append(all, &loader.BufferedFile{Name: strings.TrimPrefix(path, "chart/"), Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the generator's chart: %w", err)
	}
	c, err := loader.LoadFiles(all)
	if err != nil {
		return nil, fmt.Errorf("cannot load the generator's chart: %w", err)
	}
	c.Metadata.Version = version
	return c, nil
}

// where is the template position that Helm adds to an error.
var where = regexp.MustCompile(`^execution error at \([^)]*\): `)

// sentence removes from Helm's error everything that is not about the settings.
func sentence(err error) error {
	text := where.ReplaceAllString(strings.TrimSpace(err.Error()), "")
	if _, listed, found := strings.Cut(text, ":\n- at '"); found { // the schema complains, in the order of a map
		lines := strings.Split("- at '"+listed, "\n")
		slices.Sort(lines)
		text = strings.ReplaceAll(complaints.Sentence(lines), "<nil>", "null")
	}
	return fmt.Errorf("the settings are wrong: %s", text)
}
