// SPDX-License-Identifier: Apache-2.0

// Package packaging builds the charts that we ship. It joins the charts of this repository with
// files of the pinned Go modules (CRDs, roles, Kueue's own chart) and with the versions of
// setup/versions.yaml. Archives are reproducible byte for byte. No upstream file is written
// into the repository.
package packaging

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
)

// Bundle is the output of one run.
type Bundle struct {
	// Charts are the packages that users install.
	Charts []Chart
	// InstallYAML installs only our controller, for a cluster that already has Kueue.
	InstallYAML []byte
}

// Build makes the bundle from the repository at root. The go command downloads modules that are
// not in the module cache.
func Build(ctx context.Context, root string) (Bundle, error) {
	versions, err := setup.Load()
	if err != nil {
		return Bundle{}, err
	}
	return BuildAs(ctx, root, versions)
}

// BuildAs is Build with versions or a registry that differ from setup/versions.yaml.
func BuildAs(ctx context.Context, root string, versions setup.Versions) (Bundle, error) {
	b := builder{ctx: ctx, root: root, versions: versions, tokens: tokens(versions)}
	var bundle Bundle
	for _, build := range []func() (Chart, error){b.platform, b.appwrapper, b.teams, b.generator} {
		chart, err := build()
		if err != nil {
			return Bundle{}, err
		}
		bundle.Charts = append(bundle.Charts, chart)
	}
	controller, err := b.appwrapper()
	if err != nil {
		return Bundle{}, err
	}
	bundle.InstallYAML, err = installYAML(controller)
	return bundle, err
}

// Chart returns the chart with this name.
func (b Bundle) Chart(name string) (Chart, error) {
	for _, chart := range b.Charts {
		if chart.Name == name {
			return chart, nil
		}
	}
	return Chart{}, fmt.Errorf("the bundle has no chart %q", name)
}

// Write writes the bundle to a folder, removes archives of other versions, and returns the
// paths of the files.
func (b Bundle) Write(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create %s: %w", dir, err)
	}
	files := map[string][]byte{"install.yaml": b.InstallYAML}
	for _, chart := range b.Charts {
		archive, err := chart.Archive()
		if err != nil {
			return nil, err
		}
		files[chart.FileName()] = archive
	}
	var written []string
	for _, name := range sortedKeys(files) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return written, fmt.Errorf("cannot write %s: %w", path, err)
		}
		written = append(written, path)
	}
	return written, b.removeOthers(dir)
}

// removeOthers removes archives of other versions: users install dist/mlbatch-*.tgz, which must
// match one file. A version starts with a digit, which tells mlbatch-0.1.0.tgz from
// mlbatch-docs-0.1.0.tgz.
func (b Bundle) removeOthers(dir string) error {
	for _, chart := range b.Charts {
		archives, err := filepath.Glob(filepath.Join(dir, chart.Name+"-[0-9]*.tgz"))
		if err != nil {
			return fmt.Errorf("cannot look for archives of %s: %w", chart.Name, err)
		}
		for _, path := range archives {
			if filepath.Base(path) == chart.FileName() {
				continue
			}
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("cannot remove an older archive of %s: %w", chart.Name, err)
			}
		}
	}
	return nil
}
