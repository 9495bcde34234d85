// SPDX-License-Identifier: Apache-2.0

// Package helmrelease answers: what does Helm know of a release, and what would it make of
// a chart and values? It pulls and renders charts, reads Helm's history and the owners of
// objects, and deals with what Helm leaves behind. It installs nothing.
package helmrelease

import (
	"context"
	"io"
	"time"
)

// Progress receives readable lines while long work goes on.
type Progress = io.Writer

// DefaultNamespace is where all operators run, unless somebody wants it otherwise.
const DefaultNamespace = "mlbatch-system"

// DefaultTimeout bounds each wait. Two cores start five operators in well under a
// minute; images that have to be pulled take longer.
const DefaultTimeout = 10 * time.Minute

// Release is one Helm release: a packaged chart and nothing but values.
type Release struct {
	Name, Namespace string
	// Chart is the path of a .tgz, or oci://REGISTRY/NAME:VERSION.
	Chart string
	// PlainHTTP is whether the registry has no TLS.
	PlainHTTP bool
	// Profiles are names of setup/profiles, Values paths of values files, Set
	// assignments as of helm --set; later ones win.
	Profiles, Values, Set []string
}

// Outcome is what became of a release.
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
