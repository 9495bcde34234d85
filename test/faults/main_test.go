// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

const (
	// nodes are enough for the bystanders, and for the jobs of all faults at once, before and after.
	nodes = 100
	// parallel jobs wait for each other, so none may wait for a place.
	parallel = "100"
)

var admin client.WithWatch

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := 1, flag.Set("test.parallel", parallel)
	if err == nil {
		code, err = run(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/faults:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		return 0, err
	}
	cluster, err := localcluster.New(localcluster.Config{
		Name: "faults", Mode: localcluster.Simulated, Port: 26611, SimulatedNodes: nodes, Checkout: checkout,
	}, os.Stderr)
	if err != nil {
		return 0, err
	}
	if err := cluster.Down(); err != nil {
		return 0, err
	}
	site := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stderr, Values: []string{"test/faults/testdata/values.yaml"}}
	if *beside {
		site.EveryPart, site.Values = true, append(site.Values, "test/faults/testdata/rivals.yaml")
	}
	code := 1
	if err = site.Up(context.Background()); err == nil {
		if err = errors.Join(connect(cluster), theFigures.serveIn(cluster)); err == nil {
			code = m.Run()
		}
	}
	if code != 0 && os.Getenv("MLBATCH_E2E_KEEP") != "" {
		return code, err
	}
	if downErr := cluster.Down(); err == nil {
		err = downErr
	}
	return code, err
}

func connect(cluster *localcluster.Cluster) error {
	config, err := cluster.RESTConfig()
	if err != nil {
		return err
	}
	for _, add := range []func() error{
		func() error { return workload.AddToScheme(scheme.Scheme) },
		func() error { return kueue.AddToScheme(scheme.Scheme) },
		func() error { return jobset.AddToScheme(scheme.Scheme) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	return err
}
