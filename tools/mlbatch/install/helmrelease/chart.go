// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"
)

// Fetch reads the packaged chart from its file or registry.
func (r Release) Fetch() ([]byte, error) {
	if strings.HasPrefix(r.Chart, registry.OCIScheme+"://") {
		return r.pull()
	}
	archive, err := os.ReadFile(r.Chart)
	if err != nil {
		return nil, fmt.Errorf("cannot load the chart %s (package it with 'make release REGISTRY=REGISTRY'): %w", r.Chart, err)
	}
	return archive, nil
}

// pull pulls the chart from its OCI registry, with the credentials of helm registry login.
func (r Release) pull() ([]byte, error) {
	options := []registry.ClientOption{registry.ClientOptWriter(io.Discard)}
	if r.PlainHTTP {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	c, err := registry.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the way to the registry: %w", err)
	}
	pulled, err := c.Pull(strings.TrimPrefix(r.Chart, registry.OCIScheme+"://"))
	if err != nil {
		return nil, fmt.Errorf("cannot pull the chart %s: %w", r.Chart, err)
	}
	return pulled.Chart.Data, nil
}

// Load returns a new chart each time, because Helm changes a chart when it renders it.
func (r Release) Load(archive []byte) (*chart.Chart, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("cannot load the chart %s (package it with 'make release REGISTRY=REGISTRY'): %w", r.Chart, err)
	}
	return loaded, nil
}

// FindChart returns the path of a packaged chart in a folder, or its reference in an OCI registry.
func FindChart(from, name, version string) (string, error) {
	if strings.HasPrefix(from, registry.OCIScheme+"://") {
		return strings.TrimSuffix(from, "/") + "/" + name + ":" + version, nil
	}
	path := filepath.Join(from, name+"-"+version+".tgz")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob(filepath.Join(from, name+"-[0-9]*.tgz")) // the pattern is valid
	if len(found) != 1 {
		return "", fmt.Errorf("cannot find the packaged chart %s in %s: run 'make release REGISTRY=REGISTRY', or name a folder or oci:// registry that has it with --charts", name, from)
	}
	return found[0], nil
}
