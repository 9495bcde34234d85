// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// kueue is Kueue's own chart, taken from its module, with CRDs that are small
// enough for a Helm release and that survive an uninstall.
func (b builder) kueue() (Chart, error) {
	upstream := b.versions.Platform.Kueue
	module, err := b.moduleDir(upstream.Module)
	if err != nil {
		return Chart{}, err
	}
	files, err := readTree(filepath.Join(module, "charts", "kueue"))
	if err != nil {
		return Chart{}, err
	}
	for name, text := range files {
		switch {
		case strings.HasPrefix(name, "tests/"), strings.HasPrefix(name, "README"):
			delete(files, name)
		case strings.HasPrefix(name, "templates/crd/"):
			if files[name], err = slimCRDTemplate(text); err != nil {
				return Chart{}, fmt.Errorf("kueue's %s: %w", name, err)
			}
		}
	}
	if err := addSchema(files); err != nil {
		return Chart{}, fmt.Errorf("kueue: %w", err)
	}
	return newChart(files, func(m *metadata) {
		m.Version = strings.TrimPrefix(upstream.Version, "v")
		m.AppVersion = upstream.Version
	})
}

// In Kueue's CRD templates all template actions stand above this line, and the
// rest is plain YAML.
const endOfActions = "\n  group: "

// The annotations of Kueue's CRD templates, to which those that keep it are added.
const annotations = "\n  annotations:\n"

// slimCRDTemplate does for a CRD that is a Helm template what slimCRD does for
// a plain one. It leaves the head with its template actions as it is.
func slimCRDTemplate(text []byte) ([]byte, error) {
	at := bytes.Index(text, []byte(endOfActions))
	if at < 0 || bytes.Contains(text[at:], []byte("{{")) {
		return nil, fmt.Errorf("is not laid out as packaging expects: template actions only before %q", strings.TrimSpace(endOfActions))
	}
	head, tail := text[:at+1], text[at+1:]
	if bytes.Count(head, []byte(annotations)) != 1 {
		return nil, fmt.Errorf("is not laid out as packaging expects: one block of annotations")
	}
	kept := annotations
	for _, name := range sortedKeys(keepAnnotations) {
		kept += fmt.Sprintf("    %s: %s\n", name, keepAnnotations[name])
	}
	head = bytes.Replace(head, []byte(annotations), []byte(kept), 1)
	fields, err := slimFields(tail)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(bytes.Clone(head))
	for _, name := range sortedKeys(fields) {
		fmt.Fprintf(out, "  %s: %s\n", name, fields[name])
	}
	return out.Bytes(), nil
}
