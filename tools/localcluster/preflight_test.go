// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/localcluster/build"
)

func TestPreflightRefusesInASentence(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Cluster)
		want  []string
	}{
		"another system": {
			func(c *Cluster) { c.host.system = "darwin" },
			[]string{"needs Linux"},
		},
		"another user than root": {
			func(c *Cluster) { c.host.user = 1000 },
			[]string{"needs root", "sudo"},
		},
		"a folder that the node covers": {
			func(c *Cluster) { c.config.StateDir = "/var/lib/mlbatch" },
			[]string{"/var/lib/mlbatch/unit-x may not lie in /var/lib/", "XDG_STATE_HOME"},
		},
		"a path too long for a socket": {
			func(c *Cluster) { c.config.StateDir = "/" + strings.Repeat("x", 90) },
			[]string{"containerd.sock is too long for a socket", "XDG_STATE_HOME"},
		},
		"too little disk for the cluster": {
			func(c *Cluster) { c.host.free = onlyIn(c.config.CacheDir) },
			[]string{"has 1.5 GiB free and a local cluster may need 3.0 GiB", "XDG_STATE_HOME"},
		},
		"too little disk for builds": {
			func(c *Cluster) { c.host.free = onlyIn(c.config.StateDir) },
			[]string{"has 1.5 GiB free and a local cluster may need 12.0 GiB", "XDG_CACHE_HOME"},
		},
		"a disk that does not answer": {
			func(c *Cluster) { c.host.free = func(string) (uint64, error) { return 0, errors.New("disk on fire") } },
			[]string{"disk on fire"},
		},
		"a folder that cannot be made": {
			func(c *Cluster) { c.config.StateDir = filepath.Join(os.DevNull, "x") },
			[]string{"cannot make the folder /dev/null/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			c.spoil(cluster)
			_, err := cluster.preflight()
			wantSentence(t, err, c.want...)
		})
	}
}

// onlyIn has space in one folder.
func onlyIn(roomy string) func(string) (uint64, error) {
	return func(dir string) (uint64, error) {
		if dir == roomy {
			return 1 << 50, nil
		}
		return 3 << 29, nil
	}
}

func TestPreflightTakesThePort(t *testing.T) {
	c, _ := newCluster(t)
	listener, err := c.preflight()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	second, _ := newCluster(t)
	second.config.Port = listener.Addr().(*net.TCPAddr).Port
	_, err = second.preflight()
	wantSentence(t, err, fmt.Sprintf("port %d on 127.0.0.1 is in use; choose another with --port", second.config.Port))
}

func TestFreeSpaceIsThatOfTheDisk(t *testing.T) {
	if free, err := freeSpace(t.TempDir()); err != nil || free == 0 {
		t.Errorf("got %d, %v", free, err)
	}
	_, err := freeSpace(filepath.Join(t.TempDir(), "none"))
	wantSentence(t, err, "cannot look at the disk of ")
}

func TestBuildsThatAreDoneNeedNoSpace(t *testing.T) {
	c, _ := newCluster(t)
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := c.cache()
	if err != nil {
		t.Fatal(err)
	}
	fakeCompiler(t)
	if _, err := cache.Get(t.Context(), io.Discard, build.Node(versions)...); err != nil {
		t.Fatal(err)
	}
	c.host.free = onlyIn(c.config.StateDir)
	listener, err := c.preflight()
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}

// fakeCompiler is a go command that makes every binary out of nothing.
func fakeCompiler(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\n"
	for name := range fakeBinaries(t) {
		script += "echo > $3" + name + "\n" // go build -o FOLDER/ …
	}
	write(t, filepath.Join(dir, "go"), script)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
