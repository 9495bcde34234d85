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

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// site is a cluster without the platform, and what its administrator has.
type site struct {
	sandbox.Story
	checkout, dir string
	cluster       *localcluster.Cluster
	admin         client.Client
	// images is the archive of the platform's images.
	images string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Story: sandbox.Story{T: t}, dir: t.TempDir()}
	s.cluster = sandbox.New(t, localcluster.Config{Name: "airgap", Port: 26691, SimulatedNodes: 1})
	s.checkout = s.cluster.Config().Checkout
	s.build()
	s.admin = sandbox.Connect(t, s.cluster)
	return s
}

// build builds the command, the charts and the images, and starts the cluster. It loads no image.
func (s *site) build() {
	s.Helper()
	sandbox.Command(s.T, s.checkout, s.dir)
	programs := platform.Site{Cluster: s.cluster, Checkout: s.checkout, Progress: os.Stderr, EveryPart: true}
	_, err := programs.Build(s.Context())
	s.Must(err)
	s.Must(s.cluster.Up(s.Context()))
	s.images, err = programs.WriteImages(s.Context())
	s.Must(err)
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
	s.Must(err)
	return stdout.String()
}

// ofThePlatform are the flags that choose the parts, for the images and for the installation.
func (s *site) ofThePlatform(more ...string) []string {
	return append([]string{
		"--charts=" + s.charts(), "--profile=localcluster", "--profile=every-part", "--values=" + filepath.Join(s.checkout, "test/airgap/testdata/platform.yaml"),
	}, more...)
}
