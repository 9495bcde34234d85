// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// installNamespace is the namespace in which the upstream AppWrapper controller is installed.
const installNamespace = "appwrapper-system"

// installYAML renders the controller's chart for kubectl apply --server-side.
func installYAML(controller Chart) ([]byte, error) {
	chart, err := controller.Load()
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: "appwrapper", Namespace: installNamespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, map[string]any{}, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("cannot render install.yaml: %w", err)
	}
	// Objects are labelled with the release's service. Helm does not manage these.
	values["Release"].(map[string]any)["Service"] = "kubectl"
	rendered, err := engine.Render(chart, values)
	if err != nil {
		return nil, fmt.Errorf("cannot render install.yaml: %w", err)
	}
	maps.DeleteFunc(rendered, func(file, _ string) bool { return path.Base(file) == "NOTES.txt" })
	_, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("cannot order install.yaml: %w", err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", installNamespace)
	for _, manifest := range manifests {
		fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(manifest.Content))
	}
	return out.Bytes(), nil
}
