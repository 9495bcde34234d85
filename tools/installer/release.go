// SPDX-License-Identifier: Apache-2.0

// Package installer puts MLBatch onto a cluster, whichever it is: charts and values
// become Helm releases, and it waits until what they are made of answers. It knows
// nothing of where clusters come from.
package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// Progress receives readable lines while long work goes on.
type Progress = io.Writer

// Namespace is where all operators run.
const Namespace = "mlbatch-system"

// releaseTimeout bounds the wait for a release's pods. Two cores start five
// operators in well under a minute; a loaded machine needs longer.
const releaseTimeout = 5 * time.Minute

// Release is one Helm release: a packaged chart and nothing but values.
type Release struct {
	Name, Namespace string
	// Chart is the path of a .tgz, Values the paths of values files, later ones
	// winning.
	Chart  string
	Values []string
}

// Apply installs or upgrades the release and waits until its pods are ready.
func (r Release) Apply(ctx context.Context, kubeconfig string) error {
	config, err := r.configuration(kubeconfig)
	if err != nil {
		return err
	}
	loaded, err := loader.Load(r.Chart)
	if err != nil {
		return fmt.Errorf("cannot load the chart %s (run 'make charts'): %w", r.Chart, err)
	}
	values, err := r.values()
	if err != nil {
		return err
	}
	if err := forgetInterrupted(config.Releases, r.Name); err != nil {
		return err
	}
	if _, err := config.Releases.Last(r.Name); errors.Is(err, driver.ErrReleaseNotFound) {
		_, err = r.install(ctx, config, loaded, values)
		return r.explain(ctx, config, "install", err)
	}
	_, err = r.upgrade(ctx, config, loaded, values)
	return r.explain(ctx, config, "upgrade", err)
}

func (r Release) install(ctx context.Context, config *action.Configuration, c *chart.Chart, values chartutil.Values) (*release.Release, error) {
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = r.Name, r.Namespace, true
	install.Wait, install.Timeout = true, releaseTimeout
	return install.RunWithContext(ctx, c, values)
}

func (r Release) upgrade(ctx context.Context, config *action.Configuration, c *chart.Chart, values chartutil.Values) (*release.Release, error) {
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace = r.Namespace
	upgrade.Wait, upgrade.Timeout = true, releaseTimeout
	return upgrade.RunWithContext(ctx, r.Name, c, values)
}

// explain adds to Helm's error what the cluster knows about pods that are not
// ready.
func (r Release) explain(ctx context.Context, config *action.Configuration, verb string, err error) error {
	if err == nil {
		return nil
	}
	var why string
	if api, unreachable := config.KubernetesClientSet(); unreachable == nil {
		why = unready(ctx, api, r.Namespace)
	}
	return fmt.Errorf("cannot %s the release %s in namespace %s: %w%s", verb, r.Name, r.Namespace, err, why)
}

// values merges the values files.
func (r Release) values() (chartutil.Values, error) {
	merged := chartutil.Values{}
	for _, path := range r.Values {
		values, err := chartutil.ReadValuesFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the values file %s: %w", path, err)
		}
		merged = chartutil.CoalesceTables(values, merged)
	}
	return merged, nil
}

// configuration is Helm's access to the cluster. Its own log is dropped: the
// errors that it returns say the same.
func (r Release) configuration(kubeconfig string) (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &r.Namespace
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS = -1 // the waits look at each object of a release again and again
		return c
	}
	config := &action.Configuration{}
	if err := config.Init(flags, r.Namespace, "secret", func(string, ...any) {}); err != nil {
		return nil, fmt.Errorf("cannot set up Helm: %w", err)
	}
	return config, nil
}
