// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
)

// Render renders the release that helm install would create. It needs no cluster, and takes the
// version of Kubernetes as an argument instead.
func Render(ctx context.Context, chart *helmchart.Chart, name, namespace, kubernetes string, values map[string]any) (*release.Release, error) {
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("cannot render for Kubernetes %s: %w", kubernetes, err)
	}
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.ReleaseName, install.Namespace = name, namespace
	install.ClientOnly, install.DryRun = true, true
	install.KubeVersion = version
	rendered, err := install.RunWithContext(ctx, chart, values)
	if err != nil {
		return nil, fmt.Errorf("cannot render chart %s: %w", chart.Name(), err)
	}
	return rendered, nil
}
