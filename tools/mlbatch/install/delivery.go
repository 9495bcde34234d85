// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// delivery installs or upgrades one release.
type delivery struct {
	helmrelease.Release
	helmrelease.History
	archive []byte
	chart   *chart.Metadata
	// values are passed to the chart; all are the same, merged with its defaults.
	values, all map[string]any
	manifest    string
	objects     []helmrelease.Object
	seen        seen
	move        move
	api         access.API

	takeOwnership bool
	// killed is set if the user says that whoever worked on a pending release was killed.
	killed bool
}

// open reads the chart, the values and Helm's history of the release.
func open(r helmrelease.Release, c access.Cluster) (*delivery, error) {
	d := &delivery{Release: r}
	var err error
	if d.archive, err = r.Fetch(); err != nil {
		return nil, err
	}
	loaded, err := r.Load(d.archive)
	if err != nil {
		return nil, err
	}
	d.chart = loaded.Metadata
	if d.values, err = r.MergedValues(); err != nil {
		return nil, err
	}
	if d.History, err = r.ReadHistory(c); err != nil {
		return nil, err
	}
	return d, r.CheckChart(d.chart.Name, d.Last)
}

// keepValues keeps the release's current values, except those that are given.
func (d *delivery) keepValues() {
	kept := d.Complete
	if kept == nil {
		kept = d.Last
	}
	if kept != nil {
		d.values = chartutil.MergeTables(d.values, kept.Config)
	}
}

// look renders the release and compares it with what the cluster has.
func (d *delivery) look(ctx context.Context, api access.API) error {
	d.api = api
	if err := d.prepare(api); err != nil || d.seen.invalid != "" {
		return err
	}
	return d.observe(ctx, api)
}

// decide sets the next move.
func (d *delivery) decide(v verb) error {
	s := state{deployed: d.Complete != nil}
	if d.Last != nil {
		s.status, s.same = d.Last.Info.Status, d.same()
		s.pending = helmrelease.CheckIdle(d.Last, d.killed)
	}
	var err error
	d.move, err = decide(v, d.Name, s)
	return err
}

// prepare renders the release. Values that the chart rejects are a preflight finding, not an error.
func (d *delivery) prepare(api access.API) error {
	capabilities, err := helmrelease.ReadCapabilities(api)
	if err != nil {
		return err
	}
	if d.all, err = d.AllValues(d.archive, d.values); err == nil {
		d.manifest, err = d.Render(d.archive, d.values, capabilities)
	}
	if err != nil {
		d.seen.invalid = helmrelease.Explain(err)
		return nil
	}
	d.objects, err = helmrelease.Decode(d.manifest)
	return err
}

// same reports whether there is nothing to change.
func (d *delivery) same() bool {
	return d.Last.Chart.Metadata.Version == d.chart.Version && d.Last.Manifest == d.manifest &&
		equalJSON(d.Last.Config, d.values) && !d.seen.missing
}

// equalJSON compares values as Helm stores them: numbers from files and from --set have
// different Go types.
func equalJSON(a, b map[string]any) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// carryOut makes the move. It does not wait for pods.
func (d *delivery) carryOut(ctx context.Context) error {
	if d.move == stay {
		return nil
	}
	if err := helmrelease.FailInterrupted(d.Helm.Releases, d.Name, d.killed); err != nil {
		return err
	}
	if err := d.updateRetained(ctx); err != nil {
		return err
	}
	loaded, err := d.Load(d.archive)
	if err != nil {
		return err
	}
	if d.move == create {
		i := action.NewInstall(d.Helm)
		i.ReleaseName, i.Namespace, i.CreateNamespace = d.Name, d.Namespace, true
		i.Timeout, i.TakeOwnership = helmrelease.DefaultTimeout, d.takeOwnership
		d.Last, err = i.RunWithContext(ctx, loaded, d.values)
	} else {
		u := action.NewUpgrade(d.Helm)
		u.Namespace, u.MaxHistory, u.ResetValues = d.Namespace, 10, true
		u.Timeout, u.TakeOwnership = helmrelease.DefaultTimeout, d.takeOwnership
		d.Last, err = u.RunWithContext(ctx, d.Name, loaded, d.values)
	}
	if err != nil && helmrelease.LostRace(err) {
		return helmrelease.Busy(d.Name)
	}
	if err != nil {
		return fmt.Errorf("cannot install the release %s in namespace %s: %w", d.Name, d.Namespace, err)
	}
	return nil
}
