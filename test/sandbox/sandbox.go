// SPDX-License-Identifier: Apache-2.0

// Package sandbox starts a simulated cluster with the platform for one test, which needs root.
package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// Simulated is the label of the nodes on which pods run.
const Simulated = "localcluster.mlbatch.dev/simulated"

// Team is the label of a namespace whose work Kueue manages.
var Team = map[string]string{"mlbatch-team-namespace": "true"}

// Start starts a cluster of so many nodes, of 110 pods each, until the test ends. It removes what
// an earlier test has left under that name. MLBATCH_E2E_KEEP keeps the cluster of a test that
// fails. The values are of charts/mlbatch; nil for the defaults.
func Start(t *testing.T, name string, port, nodes int, values map[string]any) (client.WithWatch, *localcluster.Cluster) {
	t.Helper()
	return start(t, name, port, nodes, false, values)
}

// StartEveryPart also installs the parts of the platform that are disabled by default.
func StartEveryPart(t *testing.T, name string, port, nodes int, values map[string]any) (client.WithWatch, *localcluster.Cluster) {
	t.Helper()
	return start(t, name, port, nodes, true, values)
}

func start(t *testing.T, name string, port, nodes int, every bool, values map[string]any) (client.WithWatch, *localcluster.Cluster) {
	t.Helper()
	cluster, checkout := prepare(t, name, port, nodes)
	site := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stderr, EveryPart: every, Values: write(t, checkout, values)}
	if err := site.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return Connect(t, cluster), cluster
}

// Bare starts a cluster as Start does, without the platform.
func Bare(t *testing.T, name string, port, nodes int) (client.WithWatch, *localcluster.Cluster) {
	t.Helper()
	cluster, _ := prepare(t, name, port, nodes)
	if err := cluster.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return Connect(t, cluster), cluster
}

// Loaded starts a cluster as Bare does, whose nodes have the images of the platform.
func Loaded(t *testing.T, name string, port, nodes int) (client.WithWatch, *localcluster.Cluster) {
	t.Helper()
	cluster, checkout := prepare(t, name, port, nodes)
	site := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stderr}
	_, err := site.Build(t.Context())
	if err == nil {
		err = cluster.Up(t.Context())
	}
	if err == nil {
		err = site.LoadImages(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return Connect(t, cluster), cluster
}

func prepare(t *testing.T, name string, port, nodes int) (cluster *localcluster.Cluster, checkout string) {
	t.Helper()
	cluster = New(t, localcluster.Config{Name: name, Mode: localcluster.Simulated, Port: port, SimulatedNodes: nodes})
	return cluster, cluster.Config().Checkout
}

// New is a cluster of this checkout that is not started. It removes what an earlier test has left under its name, and
// in the end what this one leaves. MLBATCH_E2E_KEEP keeps the cluster of a test that fails.
func New(t *testing.T, config localcluster.Config) *localcluster.Cluster {
	t.Helper()
	var cluster *localcluster.Cluster
	var err error
	if config.Checkout, err = localcluster.FindCheckout("."); err == nil {
		cluster, err = localcluster.New(config, os.Stderr)
	}
	if err == nil {
		err = cluster.Down()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("MLBATCH_E2E_KEEP") != "" {
			return
		}
		if err := cluster.Down(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// write makes a file of values, and returns its path relative to the checkout.
func write(t *testing.T, checkout string, values map[string]any) []string {
	t.Helper()
	if values == nil {
		return nil
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	text, err := yaml.Marshal(values)
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(checkout, file)
	if err != nil {
		t.Fatal(err)
	}
	return []string{relative}
}

// Connect is for an administrator of a cluster that runs.
func Connect(t *testing.T, cluster *localcluster.Cluster) client.WithWatch {
	t.Helper()
	config, err := cluster.RESTConfig()
	for _, add := range []func() error{
		func() error { return workload.AddToScheme(scheme.Scheme) },
		func() error { return v1alpha1.AddToScheme(scheme.Scheme) },
		func() error { return kueue.AddToScheme(scheme.Scheme) },
	} {
		if err == nil {
			err = add()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	admin, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// Create creates an object, or ends the test.
func Create(t *testing.T, admin client.Client, o client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatalf("cannot create %T %s: %v", o, o.GetName(), err)
	}
}

// Within waits until a condition holds, which says what is missing, or until the limit. On a slow machine that is
// longer.
func Within(ctx context.Context, limit time.Duration, condition func() error) error {
	var missing error
	err := patience.PollFor(ctx, time.Second/5, limit, func(context.Context) (bool, error) {
		missing = condition()
		return missing == nil, nil
	})
	if err != nil && missing != nil {
		return fmt.Errorf("%w: %w", err, missing)
	}
	return err
}
