// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package takeover_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/upstream"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// site is the environment of the test.
type site struct {
	client     client.Client
	kubeconfig string
	dir        string
	// ours and theirs are the paths of both controllers.
	ours, theirs string
}

const clusterName = "takeover"

func newSite(t *testing.T) *site {
	t.Helper()
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{dir: t.TempDir()}
	if s.theirs, err = upstream.Build(t.Context(), checkout, os.Stderr); err != nil {
		t.Fatal(err)
	}
	s.ours = filepath.Join(s.dir, "controller")
	command := filepath.Join(s.dir, "localcluster")
	for program, folder := range map[string]string{s.ours: "./controller", command: "./tools/localcluster/cmd"} {
		run(t, checkout, "go", "build", "-o", program, folder)
	}
	up := []string{"up", "--mode=simulated", "--name=" + clusterName, "--port=26561", "--simulated-nodes=2"}
	t.Cleanup(func() { run(t, checkout, command, "down", "--name="+clusterName) })
	run(t, checkout, command, up...)
	s.kubeconfig = strings.TrimSpace(run(t, checkout, command, "kubeconfig", "--name="+clusterName))
	s.client = newClient(t, s.kubeconfig)
	return s
}

func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

func newClient(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := workload.AddToScheme(clientgoscheme.Scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(fmt.Errorf("cannot reach the cluster: %w", err))
	}
	return c
}
