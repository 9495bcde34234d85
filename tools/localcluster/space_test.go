// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

func TestNeedsAreSummedUpByDisk(t *testing.T) {
	fakeCompiler(t)
	for name, c := range map[string]struct {
		small string // the folder whose disk is small
		free  uint64
		want  string
	}{
		"the cluster's":                     {"/none/state", 2 * gib, "the disk of /none/state has 2.0 GiB free, and a local cluster may need 3.0 GiB there"},
		"that of finished builds":           {"/none/cache", 2 * gib, "the disk of /none/cache has 2.0 GiB free, and a local cluster may need 5.0 GiB there"},
		"that of what Go has compiled":      {"/compiled", 2 * gib, "the disk of /compiled has 2.0 GiB free, and a local cluster may need 4.4 GiB there"},
		"that of what Go has downloaded":    {"/source", 2 * gib, "the disk of /source has 2.0 GiB free, and a local cluster may need 2.6 GiB there"},
		"the one that all of them lie on":   {"/", 14 * gib, "the disk of /none/state has 14.0 GiB free, and a local cluster may need 15.0 GiB there"},
		"each has just enough, and no more": {"/", 15 * gib, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			cluster.config.StateDir, cluster.config.CacheDir = "/none/state", "/none/cache"
			cluster.host.disk = func(dir string) (disk, error) {
				if c.small == "/" || dir == c.small {
					return disk{id: 1, free: c.free}, nil
				}
				return disk{id: 2, free: 1 << 50}, nil
			}
			err := cluster.checkSpace(nil)
			if c.want == "" && err == nil {
				return
			}
			wantSentence(t, err, c.want, "XDG_STATE_HOME, XDG_CACHE_HOME, GOCACHE and GOMODCACHE")
		})
	}
}

func TestComponentsOfTheCallerNeedSpaceToo(t *testing.T) {
	c, _ := newCluster(t)
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	fakeCompiler(t)
	c.host.disk = func(string) (disk, error) { return disk{free: 18 * gib}, nil }
	if err := c.Preflight(t.Context()); err != nil {
		t.Error(err)
	}
	err = c.Preflight(t.Context(), components.Platform(versions)...)
	wantSentence(t, err, "has 18.0 GiB free, and a local cluster may need 19.0 GiB there")
}

func TestFinishedBuildsNeedNoSpace(t *testing.T) {
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
	if _, err := cache.Get(t.Context(), io.Discard, components.Node(versions)...); err != nil {
		t.Fatal(err)
	}
	c.host.disk = func(string) (disk, error) { return disk{free: 3 * gib}, nil }
	if err := c.Preflight(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTheDiskOfAMissingFolderIsThatOfItsParent(t *testing.T) {
	dir := t.TempDir()
	want, err := diskOf(dir)
	if err != nil || want.free == 0 {
		t.Errorf("got %v, %v", want, err)
	}
	none := filepath.Join(dir, "none", "yet")
	if got, err := diskOf(none); err != nil || got.id != want.id {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAnUnreadableDiskIsAnError(t *testing.T) {
	c, _ := newCluster(t)
	c.host.disk = func(string) (disk, error) { return disk{}, errors.New("disk on fire") }
	wantSentence(t, c.Preflight(t.Context()), "disk on fire")
}

// fakeCompiler installs a go command that writes empty binaries, and has its caches in /compiled
// and /source.
func fakeCompiler(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nif [ $1 = env ]; then echo /compiled; echo /source; exit; fi\n"
	for name := range fakeBinaries(t) {
		script += "echo > $3" + name + "\n" // go build -o FOLDER/ …
	}
	write(t, filepath.Join(dir, "go"), script)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestAFullDiskIsNamedAsTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		free uint64
		err  error
		want string
	}{
		"the disk is full":      {15 * mib, errors.New("etcd is not ready"), "is full; free some space and run the command again (etcd is not ready)"},
		"the disk is not full":  {17 * mib, errors.New("etcd is not ready"), "etcd is not ready"},
		"nothing has gone awry": {0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			cluster.host.disk = func(string) (disk, error) { return disk{free: c.free}, nil }
			err := cluster.fullDisk(c.err)
			if c.want == "" && err == nil {
				return
			}
			wantSentence(t, err, c.want)
		})
	}
}
