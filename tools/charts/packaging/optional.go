// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
)

func (b builder) jobset() (Chart, error) {
	return b.theirs("jobset", "charts/jobset", b.versions.Platform.JobSet)
}

func (b builder) leaderWorkerSet() (Chart, error) {
	return b.theirs("leaderworkerset", "charts/lws", b.versions.Platform.LeaderWorkerSet)
}

// crdsTemplate renders the CRDs of a chart: Helm would never upgrade those in its
// folder crds.
const crdsTemplate = `{{- range $path, $content := .Files.Glob "files/crds/*.yaml" }}
---
{{ $content | toString }}
{{- end }}
`

// theirs is an operator's own chart, taken from its module, with CRDs that are
// small enough for a Helm release, that are upgraded, and that survive an uninstall.
func (b builder) theirs(name, dir string, upstream setup.Operator) (Chart, error) {
	module, err := b.moduleDir(upstream.Module)
	if err != nil {
		return Chart{}, err
	}
	files, err := readTree(filepath.Join(module, dir))
	if err != nil {
		return Chart{}, err
	}
	for file := range files {
		switch {
		case strings.HasPrefix(file, "tests/"), strings.HasPrefix(file, "README"):
			delete(files, file)
		case strings.HasPrefix(file, "crds/"):
			delete(files, file)
			if files["files/crds/"+path.Base(file)], err = slimCRD(filepath.Join(module, dir, file)); err != nil {
				return Chart{}, err
			}
		}
	}
	files["templates/crds.yaml"] = []byte(crdsTemplate)
	if err := addSchema(files); err != nil {
		return Chart{}, fmt.Errorf("%s: %w", name, err)
	}
	return newChart(files, func(m *metadata) {
		m.Name = name
		m.Version = strings.TrimPrefix(upstream.Version, "v")
		m.AppVersion = upstream.Version
	})
}
