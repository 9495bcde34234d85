// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/discovery"

	"github.com/mlbatch/mlbatch/tools/complaints"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
)

// Capabilities is what templates can ask about a cluster.
type Capabilities struct {
	Version *chartutil.KubeVersion
	APIs    chartutil.VersionSet
}

// ReadCapabilities asks the API server for its version and for the kinds that it serves.
func ReadCapabilities(api access.API) (Capabilities, error) {
	version, err := api.Discovery().ServerVersion()
	if err != nil {
		return Capabilities{}, fmt.Errorf("cannot reach the cluster: %w", err)
	}
	apis, err := action.GetVersionSet(api.Discovery())
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // an aggregated API that is down does not affect the other kinds
		return Capabilities{}, fmt.Errorf("cannot ask the cluster which kinds it has: %w", err)
	}
	return Capabilities{&chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor}, apis}, nil
}

// Render renders the manifest of a release. It does not change the cluster.
func (r Release) Render(archive []byte, values map[string]any, c Capabilities) (string, error) {
	loaded, err := r.Load(archive)
	if err != nil {
		return "", err
	}
	i := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	i.ReleaseName, i.Namespace = r.Name, r.Namespace
	i.ClientOnly, i.DryRun = true, true
	i.KubeVersion, i.APIVersions = c.Version, c.APIs
	rendered, err := i.Run(loaded, values)
	if err != nil {
		return "", fmt.Errorf("cannot render the chart %s: %w", loaded.Name(), err)
	}
	return rendered.Manifest, nil
}

// saidBy matches the prefix in which Helm says which template called fail.
var saidBy = regexp.MustCompile(`^.*execution error at \([^)]*\): `)

// Explain turns Helm's error about values into one sentence. Helm puts the position before the
// message of a template, and prints a line for each error of a schema.
func Explain(err error) string {
	text := err.Error()
	if said := saidBy.ReplaceAllString(text, ""); said != text {
		return said
	}
	_, listed, found := strings.Cut(text, "in the following chart(s):\n")
	if !found {
		return text
	}
	return "the chart does not take these values: " + complaints.Sentence(strings.Split(listed, "\n"))
}
