// SPDX-License-Identifier: Apache-2.0

// Package helmrelease answers: what has Helm stored about a release, and what would it render
// from a chart and values? It pulls and renders charts, reads Helm's history and the owners of
// objects, and cleans up what Helm leaves behind. It installs nothing.
package helmrelease

import (
	"context"
	"io"
	"time"
)

// Progress receives lines for the user while a command runs.
type Progress = io.Writer

// DefaultNamespace is the default namespace of all operators.
const DefaultNamespace = "mlbatch-system"

// DefaultTimeout limits each wait. Two cores start five operators in well under a minute,
// but pulling images takes longer.
const DefaultTimeout = 10 * time.Minute

// Release is a Helm release: a packaged chart and its values.
type Release struct {
	Name, Namespace string
	// Chart is the path of a .tgz, or oci://REGISTRY/NAME:VERSION.
	Chart string
	// PlainHTTP is set if the registry has no TLS.
	PlainHTTP bool
	// Profiles are names of setup/profiles, Values are paths of values files, and Set are
	// assignments as for helm --set. Later ones override earlier ones.
	Profiles, Values, Set []string
}

// Outcome says what was done to a release.
type Outcome struct {
	Release, Namespace, Version string
	// Done is installed, upgraded, completed, unchanged, uninstalled or absent.
	Done string
}

// Template renders the release without a cluster, as helm template does.
func (r Release) Template(context.Context) (string, error) {
	archive, err := r.Fetch()
	if err != nil {
		return "", err
	}
	values, err := r.MergedValues()
	if err != nil {
		return "", err
	}
	return r.Render(archive, values, Capabilities{})
}
