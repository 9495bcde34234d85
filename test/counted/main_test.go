// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package counted_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

var (
	specs = flag.Int("counted.specs", 20, "how many specs of each kind must get pods")
	seed  = flag.Uint64("counted.seed", uint64(time.Now().Unix()), "which fields get which values")
)

// lanes is how many specs are tried at the same time, each in a namespace of its own.
const lanes = 8

// member belongs to all teams.
const member = "connie"

var (
	checkout string
	config   *rest.Config
	admin    client.WithWatch
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/counted:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if checkout, err = localcluster.FindCheckout("."); err != nil {
		return 0, err
	}
	cluster, err := localcluster.New(localcluster.Config{
		Name: "counted", Mode: localcluster.Simulated, Port: 26601, SimulatedNodes: 30, Checkout: checkout,
	}, os.Stderr)
	if err != nil {
		return 0, err
	}
	if err := cluster.Down(); err != nil {
		return 0, err
	}
	if err := begin(context.Background(), cluster); err != nil {
		return 0, errors.Join(err, cluster.Down())
	}
	code = m.Run()
	if code != 0 && os.Getenv("MLBATCH_E2E_KEEP") != "" {
		return code, nil
	}
	return code, cluster.Down()
}

// begin starts a cluster with every part of the platform, and a team for each lane.
func begin(ctx context.Context, cluster *localcluster.Cluster) error {
	site := platform.Site{
		Cluster: cluster, Checkout: checkout, Progress: os.Stderr, EveryPart: true,
		Values: []string{filepath.Join("test", "e2e", "testdata", "platform.yaml")},
	}
	if err := site.PackageCharts(ctx); err != nil {
		return err
	}
	if _, err := site.Build(ctx); err != nil {
		return err
	}
	if err := cluster.Up(ctx); err != nil {
		return err
	}
	teams := filepath.Join(cluster.Dir(), "teams.yaml")
	if err := errors.Join(site.LoadImages(ctx), os.WriteFile(teams, teamsOfLanes(), 0o600)); err != nil {
		return err
	}
	if err := site.Install(ctx); err != nil {
		return err
	}
	if err := site.Onboard(ctx, teams); err != nil {
		return err
	}
	var err error
	if config, err = cluster.RESTConfig(); err != nil {
		return err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	err = errors.Join(workload.AddToScheme(clientgoscheme.Scheme), kueue.AddToScheme(clientgoscheme.Scheme))
	if err != nil {
		return err
	}
	admin, err = client.NewWithWatch(config, client.Options{})
	return err
}

// teamsOfLanes is values of the chart teams. Nobody has to wait for quota.
func teamsOfLanes() []byte {
	var text strings.Builder
	text.WriteString("cohort: \"\"\nflavors: [{name: default-flavor}]\nteams:\n")
	for lane := range lanes {
		fmt.Fprintf(&text, "  - {name: %s, users: [%s], quota: {default-flavor: {cpu: 1000, memory: 4Ti, ephemeral-storage: 4Ti, pods: 1000, nvidia.com/gpu: %d}}}\n",
			namespaceOf(lane), member, 240/lanes)
	}
	return []byte(text.String())
}

func namespaceOf(lane int) string { return fmt.Sprintf("counted-%d", lane) }
