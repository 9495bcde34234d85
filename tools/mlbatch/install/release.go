// SPDX-License-Identifier: Apache-2.0

// Package install puts MLBatch onto a cluster, whichever it is: charts and values
// become Helm releases, and it waits until what they are made of answers. It looks first,
// and refuses what is known to go wrong (package obstacles). It knows nothing of where
// clusters come from.
package install

import (
	"context"
	"errors"
	"io"
	"time"
)

// Progress receives readable lines while long work goes on.
type Progress = io.Writer

// Namespace is where all operators run, unless somebody wants it otherwise.
const Namespace = "mlbatch-system"

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

// Apply installs or upgrades the release and waits until its pods are ready.
func (r Release) Apply(ctx context.Context, kubeconfig string) error {
	cluster := Cluster{Kubeconfig: kubeconfig}
	d, err := r.open(cluster)
	if err != nil {
		return err
	}
	api, err := cluster.connect()
	if err != nil {
		return err
	}
	if err := d.look(ctx, api); err != nil {
		return err
	}
	if d.seen.invalid != "" {
		return errors.New(d.seen.invalid)
	}
	if err := d.decide(ensure); err != nil {
		return err
	}
	if err := d.carryOut(ctx); err != nil {
		return err
	}
	return awaitReady(ctx, api, d.objects, DefaultTimeout, io.Discard)
}

// Template renders the release without a cluster, as helm template does.
func (r Release) Template(context.Context) (string, error) {
	archive, err := r.fetch()
	if err != nil {
		return "", err
	}
	values, err := r.values()
	if err != nil {
		return "", err
	}
	return r.render(archive, values, capabilities{})
}
