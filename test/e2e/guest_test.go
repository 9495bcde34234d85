// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/uninstall"
)

// kubeconfigVariable names the kubeconfig of an existing cluster with the platform. The tests
// create and remove only their own teams on it.
const kubeconfigVariable = "E2E_KUBECONFIG"

// guest is a run on a cluster that belongs to someone else.
type guest struct{ kubeconfig string }

func newGuest(ctx context.Context, kubeconfig string) (*guest, error) {
	if !filepath.IsAbs(kubeconfig) {
		return nil, fmt.Errorf("%s is %s; set it to an absolute path, for tests run in a folder of their own", kubeconfigVariable, kubeconfig)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of %s: %w", kubeconfigVariable, err)
	}
	config.WarningHandler = rest.NoWarnings{} // caused by probes
	api, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot talk to the cluster at %s: %w", config.Host, err)
	}
	if err := needs.Platform(ctx, api); err != nil {
		return nil, fmt.Errorf("stories cannot be told on the cluster at %s: %w", config.Host, err)
	}
	fmt.Fprintf(os.Stderr, "e2e: telling stories on the cluster at %s\n", config.Host)
	return &guest{kubeconfig}, nil
}

func (*guest) own() bool { return false }

func (g *guest) begin() []env.Func {
	return []env.Func{
		func(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
			cfg.WithKubeconfigFile(g.kubeconfig)
			return ctx, nil
		},
		timed("package the charts", plain(site.PackageCharts)),
		timed("remove an earlier run's teams", plain(g.end)),
	}
}

// end removes our teams and everything in them.
func (g *guest) end(ctx context.Context) error {
	if kept() {
		return nil
	}
	all, err := teams()
	if err != nil {
		return err
	}
	for _, name := range ownRosters { // first, because they use the flavors of the stories' teams
		err = errors.Join(err, uninstall.Remove(ctx, platform.Release{Name: name, Namespace: all.Namespace}, g.kubeconfig))
	}
	return errors.Join(err, uninstall.Remove(ctx, all, g.kubeconfig))
}
