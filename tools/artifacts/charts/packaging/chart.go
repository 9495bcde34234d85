// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// Chart is a chart in memory: its files by their paths in the chart.
type Chart struct {
	Name    string
	Version string
	Files   map[string][]byte
}

type metadata = helmchart.Metadata

const chartFile = "Chart.yaml"

// newChart makes a chart of files, and edits the metadata in its Chart.yaml.
func newChart(files map[string][]byte, edit func(*metadata)) (Chart, error) {
	var meta metadata
	if err := yaml.UnmarshalStrict(files[chartFile], &meta); err != nil {
		return Chart{}, fmt.Errorf("cannot parse %s: %w", chartFile, err)
	}
	edit(&meta)
	if err := meta.Validate(); err != nil {
		return Chart{}, fmt.Errorf("chart %s: %w", meta.Name, err)
	}
	text, err := yaml.Marshal(meta)
	if err != nil {
		return Chart{}, fmt.Errorf("cannot encode %s: %w", chartFile, err)
	}
	files[chartFile] = text
	return Chart{Name: meta.Name, Version: meta.Version, Files: files}, nil
}

// vendor adds a part to the chart, as a dependency that NAME.enabled enables.
func (c *Chart) vendor(part Chart) error {
	umbrella, err := newChart(c.Files, func(m *metadata) {
		m.Dependencies = append(m.Dependencies, &helmchart.Dependency{Name: part.Name, Version: part.Version, Condition: part.Name + ".enabled"})
	})
	if err != nil {
		return err
	}
	for name, text := range part.Files {
		umbrella.Files["charts/"+part.Name+"/"+name] = text
	}
	*c = umbrella
	return nil
}

// FileName returns the file name that helm package gives to the chart's archive.
func (c Chart) FileName() string {
	return c.Name + "-" + c.Version + ".tgz"
}

// Load returns the chart as Helm would load it from the archive.
func (c Chart) Load() (*helmchart.Chart, error) {
	var files []*loader.BufferedFile
	for _, name := range sortedKeys(c.Files) {
		files = append(files, &loader.BufferedFile{Name: name, Data: c.Files[name]})
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("cannot load chart %s: %w", c.Name, err)
	}
	return chart, nil
}

// Archive returns the chart's .tgz. It is reproducible: its files are sorted, and have no
// times or owners.
func (c Chart) Archive() ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	box := tar.NewWriter(zip)
	for _, name := range sortedKeys(c.Files) {
		header := &tar.Header{Name: c.Name + "/" + name, Mode: 0o644, Size: int64(len(c.Files[name]))}
		if err := box.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", name, err)
		}
		if _, err := box.Write(c.Files[name]); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", name, err)
		}
	}
	if err := box.Close(); err != nil {
		return nil, fmt.Errorf("cannot close the archive of %s: %w", c.Name, err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("cannot close the archive of %s: %w", c.Name, err)
	}
	return out.Bytes(), nil
}

// readTree reads the files of a chart's folder, except hidden ones.
func readTree(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read chart: %w", err)
	}
	return files, nil
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
