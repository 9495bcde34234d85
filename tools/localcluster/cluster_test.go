// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// newCluster returns a cluster on a fake machine without problems: the user is root, disks are
// empty, and no real cgroup is touched.
func newCluster(t *testing.T) (*Cluster, *bytes.Buffer) {
	t.Helper()
	root, err := os.MkdirTemp("", "unit") // t.TempDir has names too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	progress := &bytes.Buffer{}
	c, err := New(Config{Name: "unit-x", StateDir: filepath.Join(root, "s"), CacheDir: filepath.Join(root, "c")}, progress)
	if err != nil {
		t.Fatal(err)
	}
	c.config.Port = 0 // any free port
	c.host.system, c.host.user, c.host.cgroups = "linux", 0, filepath.Join(root, "cgroup")
	c.host.disk = func(string) (disk, error) { return disk{free: 1 << 50}, nil }
	c.host.modprobe = "/bin/true"
	c.host.try = func(*syscall.SysProcAttr) error { return nil }
	if err := os.Mkdir(c.host.cgroups, 0o755); err != nil {
		t.Fatal(err)
	}
	return c, progress
}

// pretendRunning records this process as the cluster's keeper.
func pretendRunning(t *testing.T, c *Cluster) {
	t.Helper()
	keeper, err := c.host.proc.keeper(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	keeper.Port, keeper.SimulatedNodes = 4711, 3
	write(t, filepath.Join(c.Dir(), "log", "x.log"), "")
	if err := plan.Write(c.Dir(), plan.KeeperFile, keeper); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// wantSentence checks an error message for users.
func wantSentence(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error; want one with %q", words)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is more than a sentence: %v", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q lacks %q", err, word)
		}
	}
}

func TestKubeconfigNeedsARunningCluster(t *testing.T) {
	c, _ := newCluster(t)
	_, err := c.Kubeconfig()
	wantSentence(t, err, `cluster "unit-x" is not running`, "localcluster up --name=unit-x")
	pretendRunning(t, c)
	_, err = c.Kubeconfig()
	wantSentence(t, err, `cluster "unit-x" is still starting`)
	write(t, c.KubeconfigPath(), "text")
	if got, err := c.Kubeconfig(); err != nil || string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLoadImagesNeedsARunningCluster(t *testing.T) {
	c, progress := newCluster(t)
	archive := filepath.Join(t.TempDir(), "a.tar")
	wantSentence(t, c.LoadImages(t.Context(), archive), "is not running", "localcluster up --name=unit-x")
	pretendRunning(t, c)
	wantSentence(t, c.LoadImages(t.Context(), archive), "cannot load the image archive "+archive, "no such file")
	write(t, archive, "an archive")
	write(t, filepath.Join(c.Dir(), "bin", "ctr"), "#!/bin/sh\necho \"$@\" > "+c.Dir()+"/said\n")
	if err := c.LoadImages(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(c.Dir(), "said"))
	want := "--address " + c.containerdSocket() + " --namespace k8s.io images import --local --label io.cri-containerd.pinned=pinned " + archive + "\n"
	if err != nil || string(said) != want {
		t.Errorf("ctr was called with %q, want %q (%v)", said, want, err)
	}
	if !strings.HasPrefix(progress.String(), "loaded a.tar in ") {
		t.Errorf("progress is %q", progress)
	}
	write(t, filepath.Join(c.Dir(), "bin", "ctr"), "#!/bin/sh\necho unrecognized image format >&2; exit 1\n")
	err = c.LoadImages(t.Context(), archive)
	if err == nil || !strings.HasSuffix(err.Error(), "\nunrecognized image format") {
		t.Errorf("a broken archive gives %v", err)
	}
}
