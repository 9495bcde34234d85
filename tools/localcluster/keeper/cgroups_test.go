// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestACgroupIsMadeInEachHierarchyOfTheHost(t *testing.T) {
	root := files(t, map[string]string{
		"cpu/tasks": "", "memory/tasks": "", "net_cls/tasks": "", // the kubelet does not use the last one
		"cpuset/cpuset.cpus": "0-1", "cpuset/cpuset.mems": "0",
	})
	if err := makePerController(root, "mlbatch-x"); err != nil {
		t.Fatal(err)
	}
	want := []string{"cpu/mlbatch-x", "cpuset/mlbatch-x", "memory/mlbatch-x"}
	if diff := cmp.Diff(want, made(t, root)); diff != "" {
		t.Error(diff)
	}
	for file, want := range map[string]string{"cpuset.cpus": "0-1", "cpuset.mems": "0"} {
		if got := read(t, filepath.Join(root, "cpuset/mlbatch-x", file)); got != want {
			t.Errorf("%s is %q, want the parent's %q", file, got, want)
		}
	}
}

func TestACgroupOfTheUnifiedHierarchyGetsTheControllers(t *testing.T) {
	root := files(t, map[string]string{"cgroup.controllers": "memory\n"})
	if err := makeUnified(root, "mlbatch-x"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Join(root, "mlbatch-x")} {
		if got := read(t, filepath.Join(dir, "cgroup.subtree_control")); got != "+memory" {
			t.Errorf("%s hands on %q", dir, got)
		}
	}
}

func TestARefusedControllerFailsOnlyIfNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		controller string
		wantErr    string
	}{
		"memory is needed":   {"memory", "cannot enable the cgroup controller memory"},
		"rdma is not needed": {"rdma", ""},
	} {
		t.Run(name, func(t *testing.T) {
			// A folder in place of the file makes the write fail, for root too.
			root := files(t, map[string]string{"cgroup.controllers": c.controller, "cgroup.subtree_control/x": ""})
			err := makeUnified(root, "mlbatch-x")
			if (err != nil) != (c.wantErr != "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got %v, want %q", err, c.wantErr)
			}
		})
	}
}

// Only a real cgroup with processes returns this error.
func TestACgroupWithProcessesOfItsOwnIsNamed(t *testing.T) {
	busy := &fs.PathError{Op: "write", Path: "cgroup.subtree_control", Err: unix.EBUSY}
	err := explainHandOn("/sys/fs/cgroup", "memory", busy)
	if err == nil || !strings.HasPrefix(err.Error(), "cgroup /sys/fs/cgroup holds processes of its own") {
		t.Errorf("got %v", err)
	}
}

func TestParentsAreCoveredOnce(t *testing.T) {
	binds := []plan.Bind{{Target: "/var/lib/kubelet"}, {Target: "/var/log/pods"}, {Target: "/var/lib/cni"}}
	if diff := cmp.Diff([]string{"/run", "/var/lib", "/var/log"}, parents(binds)); diff != "" {
		t.Error(diff)
	}
}

func files(t *testing.T, content map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range content {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// made lists the folders of the cluster below root.
func made(t *testing.T, root string) (dirs []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && entry.Name() == "mlbatch-x" {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
