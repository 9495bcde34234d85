// SPDX-License-Identifier: Apache-2.0

// Package install puts MLBatch onto a cluster: charts and values become Helm releases, and
// it waits until their pods are ready and their webhooks answer. It checks first, and refuses
// what is known to go wrong (package preflight). It does not know where clusters come from.
package install

import (
	"context"
	"errors"
	"io"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/wait"
)

// Apply installs or upgrades one release and waits until its pods are ready.
func Apply(ctx context.Context, r helmrelease.Release, kubeconfig string) error {
	cluster := access.Cluster{Kubeconfig: kubeconfig}
	d, err := open(r, cluster)
	if err != nil {
		return err
	}
	d.killed = true // nobody else works on a local cluster
	api, err := cluster.Connect()
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
	return wait.Ready(ctx, api, d.objects, helmrelease.DefaultTimeout, io.Discard)
}
