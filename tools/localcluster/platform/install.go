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

// Progress receives a line for each step that takes time.
type Progress = helmrelease.Progress

// Release is one Helm release.
type Release = helmrelease.Release

// Site is a local cluster and the checkout to install on it.
type Site struct {
	Cluster  *localcluster.Cluster
	Checkout string
	Progress Progress
	// EveryPart also installs the parts of the platform that are disabled by default.
	EveryPart bool
	// Values are more values files of the platform's chart, relative to the checkout.
	Values []string
	// charts is the folder of packaged charts; dist of the checkout by default.
	charts string
}

// Build builds everything that takes long before anything starts: all components, counted
// together in progress lines, and the training image. It returns the archive of the
// training image, or "" for a simulated cluster, which runs no images. It runs Preflight
// first, because builds may take half an hour.
func (s Site) Build(ctx context.Context) (trainingImage string, err error) {
	versions, err := s.Cluster.Versions()
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

// LoadImages loads the operators, our controller and the given archives. In a simulated
// cluster, it registers the programs instead.
func (s Site) LoadImages(ctx context.Context, archives ...string) error {
	if s.Cluster.Mode() == localcluster.Simulated {
		all, err := s.programs(ctx)
		if err != nil {
			return err
		}
		return s.Cluster.RunInstead(all)
	}
	path, err := s.WriteImages(ctx)
	if err != nil {
		return err
	}
	return s.Cluster.LoadImages(ctx, append([]string{path}, archives...)...)
}

// WriteImages writes the archive of the operators and our controllers, and loads nothing.
func (s Site) WriteImages(ctx context.Context) (archivePath string, err error) {
	all, err := s.programs(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir(), "images.tar")
	return path, writeImages(path, all)
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

// dir has the images and values for this cluster.
func (s Site) dir() string { return filepath.Join(s.Cluster.Dir(), "platform") }

// Install installs the operators and waits until they are ready. Call LoadImages first.
func (s Site) Install(ctx context.Context) error {
	stamp, err := stampControllers(s.dir())
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
		ResumeInterrupted: true, // nobody else works on a local cluster
	}.Ensure(ctx)
	return err
}

// Onboard creates the queues, namespaces and roles of the teams in a values file of
// charts/teams, relative to the checkout.
func (s Site) Onboard(ctx context.Context, values string) error {
	release, err := s.Teams("teams", Namespace, values)
	if err != nil {
		return err
	}
	return install.Apply(ctx, release, s.Cluster.KubeconfigPath())
}

// Teams returns a release of the packaged charts/teams.
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
