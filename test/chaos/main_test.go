// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

var (
	rounds = flag.Int("chaos.rounds", 1, "how many AppWrappers there are of each sort of chaos")
	seed   = flag.Uint64("chaos.seed", 1, "what goes wrong when")
)

// root is the same path in every run, so that the next run can clean up after a killed one.
var root = filepath.Join(os.TempDir(), "mlbatch-test-chaos")

var (
	admin  client.WithWatch
	config *rest.Config
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/chaos:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		return 0, err
	}
	cluster, err := localcluster.New(localcluster.Config{
		Name: "chaos", Mode: localcluster.Simulated, Port: 26561, SimulatedNodes: 2, Checkout: checkout,
	}, os.Stderr)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(cluster.Down(), os.RemoveAll(root), os.MkdirAll(root, 0o755)); err != nil {
		return 0, err
	}
	build := exec.Command("go", "build", "-o", controllerProgram(), "./controller")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("cannot build the controller: %w\n%s", err, out)
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	if err := cluster.Up(context.Background()); err != nil {
		return 0, err
	}
	if err := begin(cluster, checkout); err != nil {
		return 0, err
	}
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, "test/chaos: the logs of the controllers are in", root)
		return code, nil
	}
	return 0, os.RemoveAll(root)
}

// begin connects to the API server and creates what every test needs.
func begin(cluster *localcluster.Cluster, checkout string) (err error) {
	if config, err = cluster.RESTConfig(); err != nil {
		return err
	}
	config.QPS = -1
	if err := workload.AddToScheme(clientgoscheme.Scheme); err != nil {
		return err
	}
	if admin, err = client.NewWithWatch(config, client.Options{}); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(checkout, "charts/appwrapper/files/crds/workload.codeflare.dev_appwrappers.yaml"))
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		return err
	}
	return errors.Join(admin.Create(context.Background(), crd), makeNamespace(controllerNamespace))
}
