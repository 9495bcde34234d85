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

// crdsTemplate renders the CRDs of a chart: Helm would never upgrade those in its
// folder crds.
const crdsTemplate = `{{- range $path, $content := .Files.Glob "files/crds/*.yaml" }}
---
{{ $content | toString }}
{{- end }}
`

// theirs is an operator's own chart, taken from its module, with CRDs that are
// small enough for a Helm release, that are upgraded, and that survive an uninstall.
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

// slimChart drops what nobody installs, and makes CRDs small, whether they are templates or
// in Helm's folder for them.
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

// apply edits a file, which has the text of the edit once.
func apply(e parts.Edit, files map[string][]byte) error {
	if n := bytes.Count(files[e.File], []byte(e.From)); n != 1 {
		return fmt.Errorf("%s is not laid out as packaging expects: %q is there %d times", e.File, e.From, n)
	}
	files[e.File] = bytes.Replace(files[e.File], []byte(e.From), []byte(e.To), 1)
	return nil
}
