// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
)

func (b builder) jobset() (Chart, error) {
	return b.theirs("jobset", "charts/jobset", b.versions.Platform.JobSet,
		// Empty fields are owned fields: each upgrade would write over the certificate.
		edit{"templates/internalcert/secret.yaml", "\ndata:\n  ca.crt: \"\"\n  ca.key: \"\"\n  tls.crt: \"\"\n  tls.key: \"\"\n", "\n"},
		priority("templates/controller/deployment.yaml", ".Values.controller"))
}

func (b builder) leaderWorkerSet() (Chart, error) {
	return b.theirs("leaderworkerset", "charts/lws", b.versions.Platform.LeaderWorkerSet,
		priority("templates/manager/deployment.yaml", ".Values"))
}

// edit is a change of a template of theirs, at a text that is there once.
type edit struct{ file, from, to string }

// priority gives the pods of a Deployment the value priorityClassName of a section.
func priority(file, section string) edit {
	at := "      {{- with " + section + ".nodeSelector }}\n"
	return edit{file, at, "      {{- with " + section + ".priorityClassName }}\n      priorityClassName: {{ . }}\n      {{- end }}\n" + at}
}

func (e edit) apply(files map[string][]byte) error {
	if n := bytes.Count(files[e.file], []byte(e.from)); n != 1 {
		return fmt.Errorf("%s is not laid out as packaging expects: %q is there %d times", e.file, e.from, n)
	}
	files[e.file] = bytes.Replace(files[e.file], []byte(e.from), []byte(e.to), 1)
	return nil
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
func (b builder) theirs(name, dir string, upstream setup.Operator, edits ...edit) (Chart, error) {
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
	for _, e := range edits {
		if err := e.apply(files); err != nil {
			return Chart{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := addSchema(files); err != nil {
		return Chart{}, fmt.Errorf("%s: %w", name, err)
	}
	return newChart(files, func(m *metadata) {
		m.Name = name
		m.Version = strings.TrimPrefix(upstream.Version, "v")
		m.AppVersion = upstream.Version
	})
}
