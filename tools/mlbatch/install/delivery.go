// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
)

// delivery is a release on its way to a cluster.
type delivery struct {
	Release
	memory
	archive []byte
	chart   *chart.Metadata
	// values are what is given to the chart, of which all, with defaults, are what it has.
	values, all map[string]any
	manifest    string
	objects     []object
	seen        seen
	move        move
	api         api

	takeOwnership bool
}

// open reads everything that does not need a look at the cluster's objects.
func (r Release) open(c Cluster) (*delivery, error) {
	d := &delivery{Release: r}
	var err error
	if d.archive, err = r.fetch(); err != nil {
		return nil, err
	}
	loaded, err := r.load(d.archive)
	if err != nil {
		return nil, err
	}
	d.chart = loaded.Metadata
	if d.values, err = r.values(); err != nil {
		return nil, err
	}
	if d.memory, err = r.recall(c); err != nil {
		return nil, err
	}
	return d, r.refuseAnother(d.chart.Name, d.last)
}

// refuseAnother knows that somebody else may have a release of the same name.
func (r Release) refuseAnother(chart string, last *release.Release) error {
	if last == nil || last.Chart.Metadata.Name == chart {
		return nil
	}
	return fmt.Errorf("the release %s in namespace %s is of the chart %s and not ours: name another --namespace", r.Name, r.Namespace, last.Chart.Metadata.Name)
}

// keepValues has the release keep the values that it has, but for those that are given.
func (d *delivery) keepValues() {
	kept := d.complete
	if kept == nil {
		kept = d.last
	}
	if kept != nil {
		d.values = chartutil.MergeTables(d.values, kept.Config)
	}
}

// look renders the release and compares it with what the cluster has.
func (d *delivery) look(ctx context.Context, api api) error {
	d.api = api
	if err := d.prepare(api); err != nil || d.seen.invalid != "" {
		return err
	}
	return d.observe(ctx, api)
}

// decide chooses the move.
func (d *delivery) decide(v verb) error {
	s := state{deployed: d.complete != nil}
	if d.last != nil {
		s.status, s.same = d.last.Info.Status, d.same()
	}
	var err error
	d.move, err = decide(v, d.Name, s)
	return err
}

// prepare renders the release. What its chart says against the values is a finding.
func (d *delivery) prepare(api api) error {
	capabilities, err := observeCapabilities(api)
	if err != nil {
		return err
	}
	loaded, err := d.load(d.archive)
	if err != nil {
		return err
	}
	if d.all, err = chartutil.CoalesceValues(loaded, d.values); err == nil {
		d.manifest, err = d.render(d.archive, d.values, capabilities)
	}
	if err != nil {
		d.seen.invalid = plainly(err)
		return nil
	}
	d.objects, err = decode(d.manifest)
	return err
}

// same is whether there is nothing to change.
func (d *delivery) same() bool {
	return d.last.Chart.Metadata.Version == d.chart.Version && d.last.Manifest == d.manifest &&
		equalJSON(d.last.Config, d.values) && !d.seen.missing
}

// equalJSON compares as Helm stores: numbers of files and of assignments differ in Go.
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
	if err := forgetInterrupted(ctx, d.helm.Releases, d.Name); err != nil {
		return err
	}
	if err := d.setKept(ctx); err != nil {
		return err
	}
	loaded, err := d.load(d.archive)
	if err != nil {
		return err
	}
	if d.move == create {
		i := action.NewInstall(d.helm)
		i.ReleaseName, i.Namespace, i.CreateNamespace = d.Name, d.Namespace, true
		i.Timeout, i.TakeOwnership = DefaultTimeout, d.takeOwnership
		d.last, err = i.RunWithContext(ctx, loaded, d.values)
	} else {
		u := action.NewUpgrade(d.helm)
		u.Namespace, u.MaxHistory, u.ResetValues = d.Namespace, 10, true
		u.Timeout, u.TakeOwnership = DefaultTimeout, d.takeOwnership
		d.last, err = u.RunWithContext(ctx, d.Name, loaded, d.values)
	}
	if err != nil && begunMeanwhile(err) {
		return atWork(d.Name)
	}
	if err != nil {
		return fmt.Errorf("cannot install the release %s in namespace %s: %w", d.Name, d.Namespace, err)
	}
	return nil
}
