// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/discovery"
)

// capabilities are what charts ask about a cluster.
type capabilities struct {
	version *chartutil.KubeVersion
	apis    chartutil.VersionSet
}

func observeCapabilities(api api) (capabilities, error) {
	version, err := api.Discovery().ServerVersion()
	if err != nil {
		return capabilities{}, fmt.Errorf("cannot reach the cluster: %w", err)
	}
	apis, err := action.GetVersionSet(api.Discovery())
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // an extension that is away says nothing of the rest
		return capabilities{}, fmt.Errorf("cannot ask the cluster which kinds it has: %w", err)
	}
	return capabilities{&chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor}, apis}, nil
}

// render makes the manifest of a release, and changes nothing anywhere.
func (r Release) render(archive []byte, values map[string]any, c capabilities) (string, error) {
	loaded, err := r.load(archive)
	if err != nil {
		return "", err
	}
	i := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	i.ReleaseName, i.Namespace = r.Name, r.Namespace
	i.ClientOnly, i.DryRun = true, true
	i.KubeVersion, i.APIVersions = c.version, c.apis
	rendered, err := i.Run(loaded, values)
	if err != nil {
		return "", fmt.Errorf("cannot render the chart %s: %w", loaded.Name(), err)
	}
	return rendered.Manifest, nil
}

// saidBy is where Helm says which template has refused to be rendered.
var saidBy = regexp.MustCompile(`^.*execution error at \([^)]*\): `)

// plainly makes one sentence of what Helm says of values: what a template says stands
// behind where it says so, and a schema's complaints are a line each.
func plainly(err error) string {
	text := err.Error()
	if said := saidBy.ReplaceAllString(text, ""); said != text {
		return said
	}
	_, complaints, found := strings.Cut(text, "in the following chart(s):\n")
	if !found {
		return text
	}
	return "the chart does not take these values: " + sentence(strings.Split(complaints, "\n"))
}
