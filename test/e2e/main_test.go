// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
)

var (
	testenv env.Environment
	site    platform.Site
	// here is the cluster that stories run on; report has their results.
	here   needs.Cluster
	report needs.Report
)

// venue is a cluster for the stories: a new local one, or an existing one.
type venue interface {
	// begin prepares the platform.
	begin() []env.Func
	// end removes what the run has created.
	end(context.Context) error
	// own reports whether the run has created the cluster.
	own() bool
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run prepares the venue, runs the tests and cleans up. It does not leave the cleanup to the
// framework, which would not report its errors.
func run(m *testing.M) (int, error) {
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		return 0, err
	}
	site = platform.Site{
		Checkout: checkout, Progress: os.Stderr, EveryPart: true,
		Values: []string{filepath.Join("test", "e2e", "testdata", "platform.yaml")},
	}
	v, err := chooseVenue()
	if err != nil {
		return 0, err
	}
	if testenv, err = env.NewFromFlags(); err != nil {
		return 0, err
	}
	testenv.Setup(v.begin()...)
	testenv.Setup(
		timed("onboard teams", onboard),
		func(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
			return ctx, connect(ctx, cfg, v.own())
		},
		watchQuota,
		watchAudit,
	)
	code := testenv.Run(m)
	fmt.Fprintln(os.Stderr, "e2e:", &report)
	if report.Empty() {
		err = errors.New("none of the stories that were asked for can be told on this cluster")
	}
	return code, errors.Join(err, auditing.end(), endQuotaWatch(context.Background()), v.end(context.Background()))
}

// chooseVenue returns our own cluster unless the environment names another. KUBECONFIG does not
// count: it often points to a cluster that is not meant for tests.
func chooseVenue() (venue, error) {
	if path := os.Getenv(kubeconfigVariable); path != "" {
		return newGuest(context.Background(), path)
	}
	return newOwn()
}

// teams is the release of the stories' teams. The names of all its objects begin with e2e-, to
// avoid conflicts with existing objects.
func teams() (platform.Release, error) {
	return site.Teams("mlbatch-e2e", "default", filepath.Join("test", "e2e", "testdata", "teams.yaml"))
}

func onboard(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	release, err := teams()
	if err != nil {
		return ctx, err
	}
	return ctx, install.Apply(ctx, release, cfg.KubeconfigFile())
}

// connected is true once the platform is ready and stories can run.
var connected bool

// connect gives the framework the cluster, and the kinds of the platform.
func connect(ctx context.Context, cfg *envconf.Config, own bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", cfg.KubeconfigFile())
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, -1 // no client-side rate limit
	client, err := klient.New(config)
	if err != nil {
		return err
	}
	cfg.WithClient(client)
	scheme := client.Resources().GetScheme()
	err = errors.Join(
		workload.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), kueue.AddToScheme(scheme), kubeflow.AddToScheme(scheme),
		podgroup.AddToScheme(scheme), rayv1.AddToScheme(scheme),
		jobset.AddToScheme(scheme), lws.AddToScheme(scheme),
	)
	if err != nil {
		return err
	}
	here, err = needs.Observe(ctx, client.Resources().GetControllerRuntimeClient(), own, os.Getenv)
	connected = err == nil
	return err
}

// timed prints how long a step took.
func timed(name string, step env.Func) env.Func {
	return func(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
		fmt.Fprintf(os.Stderr, "-- %s\n", name)
		begin := time.Now()
		ctx, err := step(ctx, cfg)
		fmt.Fprintf(os.Stderr, "-- %s: %s\n", name, time.Since(begin).Round(100*time.Millisecond))
		return ctx, err
	}
}

// plain adapts a step that does not use the framework's configuration.
func plain(step func(context.Context) error) env.Func {
	return func(ctx context.Context, _ *envconf.Config) (context.Context, error) { return ctx, step(ctx) }
}
