// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/torch"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// Namespace is where all operators run.
const Namespace = helmrelease.DefaultNamespace

// Progress receives readable lines while long work goes on.
type Progress = helmrelease.Progress

// Release is one Helm release.
type Release = helmrelease.Release

// Site is a local cluster with what is needed to put the platform on it.
type Site struct {
	Cluster  *localcluster.Cluster
	Checkout string
	Progress Progress
	// EveryPart is true if the parts of the platform are wanted, too, that are off
	// by default.
	EveryPart bool
	// Values are files with more values of the platform's chart, relative to the checkout.
	Values []string
	// charts is where packaged charts are, if not in dist of the checkout.
	charts string
}

// Build makes everything that takes long before anything is started: all
// components, so that progress counts them in one go, and the training image.
// It returns the archive of the training image, which a simulated cluster has no
// use for and is "" there. What would keep the cluster from starting is refused
// first, because builds may take half an hour.
func (s Site) Build(ctx context.Context) (trainingImage string, err error) {
	versions, err := setup.Load()
	if err != nil {
		return "", err
	}
	platform := s.operators(versions)
	if err := s.Cluster.Preflight(ctx, platform...); err != nil {
		return "", err
	}
	components := append(s.Cluster.Components(versions), platform...)
	if _, err := s.cache().Get(ctx, s.Progress, components...); err != nil || s.Cluster.Mode() == localcluster.Simulated {
		return "", err
	}
	return torch.Build(ctx, filepath.Join(s.Cluster.Config().CacheDir, "images"), s.Progress)
}

// LoadImages loads the operators, our controller and the given archives. A
// simulated cluster is told of the programs instead.
func (s Site) LoadImages(ctx context.Context, archives ...string) error {
	all, err := s.programs(ctx)
	if err != nil {
		return err
	}
	if s.Cluster.Mode() == localcluster.Simulated {
		return s.Cluster.RunInstead(all)
	}
	path := filepath.Join(s.dir(), "images.tar")
	if err := writeImages(path, all); err != nil {
		return err
	}
	return s.Cluster.LoadImages(ctx, append([]string{path}, archives...)...)
}

// PackageCharts writes *.tgz and install.yaml.
func (s Site) PackageCharts(ctx context.Context) error {
	bundle, err := packaging.Build(ctx, s.Checkout)
	if err != nil {
		return err
	}
	_, err = bundle.Write(s.chartsDir())
	return err
}

func (s Site) chartsDir() string { return cmp.Or(s.charts, filepath.Join(s.Checkout, "dist")) }

// dir is where images and values for this cluster are put together.
func (s Site) dir() string { return filepath.Join(s.Cluster.Dir(), "platform") }

// Install installs the operators, after LoadImages, and waits until they answer.
func (s Site) Install(ctx context.Context) error {
	stamp, err := stampController(s.dir())
	if err != nil {
		return err
	}
	values := []string{"setup/profiles/localcluster.yaml", stamp}
	if s.EveryPart {
		values = append(values, "setup/profiles/every-part.yaml")
	}
	release, err := s.release("mlbatch", Namespace, append(values, s.Values...)...)
	if err != nil {
		return err
	}
	_, err = install.Installer{
		Cluster: access.Cluster{Kubeconfig: s.Cluster.KubeconfigPath()}, Platform: release, Progress: s.Progress,
	}.Ensure(ctx)
	return err
}

// Onboard makes the queues, namespaces and roles of the teams in a values file
// of charts/teams, given relative to the checkout.
func (s Site) Onboard(ctx context.Context, values string) error {
	release, err := s.Teams("teams", Namespace, values)
	if err != nil {
		return err
	}
	return install.Apply(ctx, release, s.Cluster.KubeconfigPath())
}

// Teams is the packaged charts/teams as a release of that name.
func (s Site) Teams(name, namespace, values string) (Release, error) {
	release, err := s.release("teams", namespace, values)
	release.Name = name
	return release, err
}

func (s Site) release(name, namespace string, values ...string) (Release, error) {
	versions, err := setup.Load()
	if err != nil {
		return Release{}, err
	}
	path := filepath.Join(s.chartsDir(), fmt.Sprintf("%s-%s.tgz", name, versions.Version))
	if _, err := os.Stat(path); err != nil {
		return Release{}, fmt.Errorf("cannot find the packaged chart %s (run 'make charts'): %w", name, err)
	}
	for i, v := range values {
		if !filepath.IsAbs(v) {
			values[i] = filepath.Join(s.Checkout, v)
		}
	}
	return Release{Name: name, Namespace: namespace, Chart: path, Values: values}, nil
}

func (s Site) cache() components.Cache {
	return components.CacheIn(s.Cluster.Config().CacheDir, s.Checkout)
}

// Template renders a packaged chart with a values file, for kubectl create.
func (s Site) Template(ctx context.Context, chart, values string) (string, error) {
	release, err := s.release(chart, "default", values)
	if err != nil {
		return "", err
	}
	return release.Template(ctx)
}
