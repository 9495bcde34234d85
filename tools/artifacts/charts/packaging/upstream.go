// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// crdsTemplate renders the CRDs of a chart as templates: Helm never upgrades CRDs in the
// folder crds.
const crdsTemplate = `{{- range $path, $content := .Files.Glob "files/crds/*.yaml" }}
---
{{ $content | toString }}
{{- end }}
`

// theirs returns an operator's own chart from its module. It changes the CRDs: they fit into a
// Helm release, are upgraded, and are retained by an uninstall.
func (b builder) theirs(row parts.Part) (Chart, error) {
	upstream := row.Operator(b.versions)
	module, err := b.moduleDir(upstream.Module)
	if err != nil {
		return Chart{}, err
	}
	dir := filepath.Join(module, filepath.FromSlash(row.Chart.Upstream))
	files, err := readTree(dir)
	if err != nil {
		return Chart{}, err
	}
	if err := slimChart(dir, files); err != nil {
		return Chart{}, fmt.Errorf("%s: %w", row.Name, err)
	}
	for _, e := range row.Chart.Edits {
		if err := apply(e, files); err != nil {
			return Chart{}, fmt.Errorf("%s: %w", row.Name, err)
		}
	}
	if err := addSchema(files); err != nil {
		return Chart{}, fmt.Errorf("%s: %w", row.Name, err)
	}
	return newChart(files, func(m *metadata) {
		m.Name = row.Name
		m.Version = strings.TrimPrefix(upstream.Version, "v")
		m.AppVersion = upstream.Version
	})
}

// slimChart drops tests and READMEs, and slims CRDs, both templates and those in the folder crds.
func slimChart(dir string, files map[string][]byte) error {
	for file, text := range files {
		var err error
		switch {
		case strings.HasPrefix(file, "tests/"), strings.HasPrefix(file, "README"):
			delete(files, file)
		case strings.HasPrefix(file, "templates/crd/"):
			files[file], err = slimCRDTemplate(text)
		case strings.HasPrefix(file, "crds/"):
			delete(files, file)
			files["files/crds/"+path.Base(file)], err = slimCRD(filepath.Join(dir, file))
			files["templates/crds.yaml"] = []byte(crdsTemplate)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// apply applies an edit to a file. It returns an error unless the file has the text exactly once.
func apply(e parts.Edit, files map[string][]byte) error {
	if n := bytes.Count(files[e.File], []byte(e.From)); n != 1 {
		return fmt.Errorf("%s has an unexpected layout: it has %q %d times, not once", e.File, e.From, n)
	}
	files[e.File] = bytes.Replace(files[e.File], []byte(e.From), []byte(e.To), 1)
	return nil
}
