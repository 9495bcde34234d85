// SPDX-License-Identifier: Apache-2.0

// Package e2e_test tells the platform's user stories against the real
// components on a local cluster. One cluster is made for the run, installed
// from the packaged charts with values only, and removed afterwards.
package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/platform"
)

var (
	testenv env.Environment
	site    platform.Site
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run is the life of the cluster. Its end is not left to the framework, which
// would not tell anybody that it went wrong.
func run(m *testing.M) (int, error) {
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		return 0, err
	}
	port, err := strconv.Atoi(cmp.Or(os.Getenv("E2E_PORT"), "36444"))
	if err != nil {
		return 0, fmt.Errorf("E2E_PORT has to be a port: %w", err)
	}
	cluster, err := localcluster.New(localcluster.Config{Name: "e2e", Port: port, Checkout: checkout}, os.Stderr)
	if err != nil {
		return 0, err
	}
	site = platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stderr}
	testenv, err = env.NewFromFlags()
	if err != nil {
		return 0, err
	}
	testenv.Setup(
		timed("end an earlier run's cluster", endEarlier),
		timed("build", build),
		timed("start the cluster", func(ctx context.Context) error { return cluster.Up(ctx) }),
		timed("load images", func(ctx context.Context) error { return site.LoadImages(ctx, trainingImage) }),
		timed("install the platform", func(ctx context.Context) error { return site.Install(ctx) }),
		timed("onboard teams", func(ctx context.Context) error {
			return site.Onboard(ctx, filepath.Join("test", "e2e", "testdata", "teams.yaml"))
		}),
		connect,
		watchQuota,
	)
	code := testenv.Run(m)
	return code, errors.Join(quota.End(context.Background()), tearDown())
}

// trainingImage is the archive that build has made.
var trainingImage string

func build(ctx context.Context) error {
	if err := site.PackageCharts(ctx); err != nil {
		return err
	}
	var err error
	trainingImage, err = site.Build(ctx)
	return err
}

// connected is true once the platform is there and stories can be told.
var connected bool

// connect gives the framework the cluster and the kinds of the platform.
func connect(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	config, err := site.Cluster.RESTConfig()
	if err != nil {
		return ctx, err
	}
	config.QPS, config.Burst = -1, -1 // tests wait on conditions, not on themselves
	client, err := klient.New(config)
	if err != nil {
		return ctx, err
	}
	cfg.WithClient(client)
	scheme := client.Resources().GetScheme()
	err = errors.Join(
		workload.AddToScheme(scheme), kueue.AddToScheme(scheme), kubeflow.AddToScheme(scheme),
		podgroup.AddToScheme(scheme), rayv1.AddToScheme(scheme),
	)
	connected = err == nil
	return ctx, err
}

// timed prints how long a step took.
func timed(name string, step func(context.Context) error) env.Func {
	return func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		fmt.Fprintf(os.Stderr, "-- %s\n", name)
		begin := time.Now()
		err := step(ctx)
		fmt.Fprintf(os.Stderr, "-- %s: %s\n", name, time.Since(begin).Round(100*time.Millisecond))
		return ctx, err
	}
}
