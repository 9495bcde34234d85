// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package kustomize_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

const limit = 3 * time.Minute

// site is a cluster, and the folder in which an administrator works.
type site struct {
	*testing.T
	checkout, dir string
	cluster       *localcluster.Cluster
	admin         client.Client
	// alice is a member of all teams.
	alice client.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir()}
	var err error
	s.checkout, err = localcluster.FindCheckout(".")
	s.must(err)
	s.build()
	programs := s.buildOld()
	s.admin, s.cluster = sandbox.Bare(t, "kustomize", 26681, 6)
	s.load(programs)
	config, err := s.cluster.RESTConfig()
	s.must(err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:authenticated"}}
	s.alice, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	s.must(err)
	return s
}

// build makes the command and the charts of this checkout.
func (s *site) build() {
	s.Helper()
	build := exec.CommandContext(s.Context(), "go", "build", "-o", filepath.Join(s.dir, "mlbatch"), "./tools/mlbatch")
	build.Dir = s.checkout
	if out, err := build.CombinedOutput(); err != nil {
		s.Fatalf("cannot build the command: %v\n%s", err, out)
	}
	bundle, err := packaging.Build(s.Context(), s.checkout)
	s.must(err)
	_, err = bundle.Write(filepath.Join(s.dir, "charts"))
	s.must(err)
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// await waits until a condition holds, which says what is missing.
func (s *site) await(what string, condition func() error) {
	s.Helper()
	if err := sandbox.Within(s.Context(), limit, condition); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// run runs a line of a shell that must succeed, and returns what it prints.
func (s *site) run(line string) string {
	s.Helper()
	out, err := s.try(line)
	s.must(err)
	return out
}

func (s *site) try(line string) (string, error) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.KubeconfigPath(),
		"PATH="+strings.Join([]string{s.dir, filepath.Dir(s.cluster.KubectlPath()), os.Getenv("PATH")}, ":"))
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	err := cmd.Run()
	s.Logf("$ %s\n%s%s", line, progress.String(), out.String())
	if err != nil {
		err = errors.Join(err, errors.New(progress.String()))
	}
	return out.String(), err
}
