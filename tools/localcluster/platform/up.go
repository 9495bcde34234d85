// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// Up starts the cluster with the platform and two teams. It may be repeated.
func (s Site) Up(ctx context.Context) error {
	training, err := s.Build(ctx)
	if err != nil {
		return err
	}
	if err := s.Cluster.Up(ctx); err != nil {
		return err
	}
	s.charts = filepath.Join(s.dir(), "charts") // do not write to the checkout
	if err := s.PackageCharts(ctx); err != nil {
		return err
	}
	if err := s.LoadImages(ctx, training); err != nil {
		return err
	}
	fmt.Fprintln(s.Progress, "installing the platform")
	if err := s.Install(ctx); err != nil {
		return err
	}
	fmt.Fprintln(s.Progress, "onboarding teams")
	return s.Onboard(ctx, s.teams())
}

// teams is the values file that fits the nodes of the cluster.
func (s Site) teams() string {
	if s.Cluster.Mode() == localcluster.Simulated {
		return "setup/teams/simulated.yaml"
	}
	return "setup/teams/demo.yaml"
}
