// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Template renders the release without a cluster, as helm template does.
func (r Release) Template(ctx context.Context) (string, error) {
	loaded, err := loader.Load(r.Chart)
	if err != nil {
		return "", fmt.Errorf("cannot load the chart %s (run 'make charts'): %w", r.Chart, err)
	}
	values, err := r.values()
	if err != nil {
		return "", err
	}
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.ReleaseName, install.Namespace = r.Name, r.Namespace
	install.ClientOnly, install.DryRun = true, true
	rendered, err := install.RunWithContext(ctx, loaded, values)
	if err != nil {
		return "", fmt.Errorf("cannot render the chart %s: %w", loaded.Name(), err)
	}
	return rendered.Manifest, nil
}
