// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package airgap_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// site is a cluster without the platform, and what its administrator has.
type site struct {
	*testing.T
	checkout, dir string
	cluster       *localcluster.Cluster
	admin         client.Client
	// images is the archive of the platform's images.
	images string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir()}
	var err error
	s.checkout, err = localcluster.FindCheckout(".")
	s.must(err)
	s.cluster, err = localcluster.New(localcluster.Config{Name: "airgap", Port: 26691, SimulatedNodes: 1, Checkout: s.checkout}, os.Stderr)
	s.must(err)
	s.must(s.cluster.Down()) // left by a killed run
	s.Cleanup(s.end)
	s.build()
	config, err := s.cluster.RESTConfig()
	s.must(err)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	s.admin, err = client.New(config, client.Options{})
	s.must(err)
	return s
}

// build builds the command, the charts and the images, and starts the cluster. It loads no image.
func (s *site) build() {
	s.Helper()
	build := exec.CommandContext(s.Context(), "go", "build", "-o", s.program(), "./tools/mlbatch")
	build.Dir = s.checkout
	if out, err := build.CombinedOutput(); err != nil {
		s.Fatalf("cannot build the command: %v\n%s", err, out)
	}
	bundle, err := packaging.Build(s.Context(), s.checkout)
	s.must(err)
	_, err = bundle.Write(s.charts())
	s.must(err)
	programs := platform.Site{Cluster: s.cluster, Checkout: s.checkout, Progress: os.Stderr, EveryPart: true}
	_, err = programs.Build(s.Context())
	s.must(err)
	s.must(s.cluster.Up(s.Context()))
	s.images, err = programs.WriteImages(s.Context())
	s.must(err)
}

func (s *site) end() {
	if s.Failed() && os.Getenv("MLBATCH_E2E_KEEP") != "" {
		return
	}
	s.must(s.cluster.Down())
}

func (s *site) program() string { return filepath.Join(s.dir, "mlbatch") }
func (s *site) charts() string  { return filepath.Join(s.dir, "charts") }

// mlbatch runs the command as an administrator does, and returns its output.
func (s *site) mlbatch(environment []string, args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), s.program(), args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), environment...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	s.Logf("mlbatch %s\n%s%s", strings.Join(args, " "), stderr.String(), stdout.String())
	s.must(err)
	return stdout.String()
}

// ofThePlatform are the flags that choose the parts, for the images and for the installation.
func (s *site) ofThePlatform(more ...string) []string {
	return append([]string{
		"--charts=" + s.charts(), "--profile=localcluster", "--profile=every-part", "--values=" + filepath.Join(s.checkout, "test/airgap/testdata/platform.yaml"),
	}, more...)
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// await bounds every wait. The limit is long because a machine that compiles may be slow.
func (s *site) await(what string, holds func() error) {
	s.Helper()
	if err := sandbox.Within(s.Context(), 3*time.Minute, holds); err != nil {
		s.Fatalf("waiting until %s: %v", what, err)
	}
}
