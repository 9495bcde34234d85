// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// machine returns a host with a running cluster "live" with keeper 100, leftovers of a cluster
// "dead", and another user's running cluster "other" with keeper 300.
func machine(t *testing.T) (host, Config) {
	t.Helper()
	root := t.TempDir()
	p := proc(filepath.Join(root, "proc"))
	config := Config{CacheDir: "/home/a/.cache/mlbatch", StateDir: filepath.Join(root, "clusters")}
	h := host{proc: p, cgroups: filepath.Join(root, "cgroup")}

	cgroup := func(name string) string { return cgroupOf(filepath.Join(config.StateDir, name)) }
	others := filepath.Join(root, "other-home", "other") // a user with another HOME
	for dir, keeper := range map[string]plan.Keeper{
		filepath.Join(config.StateDir, "live"): {PID: 100, StartTime: "1"},
		filepath.Join(config.StateDir, "dead"): {PID: 200, StartTime: "1"},
		others:                                 {PID: 300, StartTime: "1"},
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := plan.Write(dir, plan.KeeperFile, keeper); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []struct {
		pid, parent                 int
		name, exe, cgroup, pidSpace string
	}{
		{1, 0, "init", "/sbin/init", "/", "pid:[1]"},
		{50, 1, "bash", "/bin/bash", "/user", "pid:[1]"},
		{100, 1, "keeper", config.StateDir + "/live/bin/keeper", "/", "pid:[2]"},
		{101, 100, "etcd", config.CacheDir + "/components/etcd/server", "/", "pid:[2]"},
		{102, 101, "python", "/usr/bin/python", "/" + cgroup("live") + "/pod1", "pid:[3]"},
		{300, 1, "keeper", others + "/bin/keeper", "/", "pid:[5]"},
		{301, 300, "python", "/usr/bin/python", "/" + cgroupOf(others) + "/pod1", "pid:[5]"},
		{201, 1, "kwok (old)", config.CacheDir + "/components/kwok/kwok", "/", "pid:[1]"},
		{202, 50, "python", "/usr/bin/python", "/" + cgroup("dead") + "/pod1", "pid:[4]"},
		{51, 50, "kubectl", config.CacheDir + "/components/kubectl/kubectl", "/user", "pid:[1]"},
		{52, 50, "ctr", config.CacheDir + "/components/containerd/ctr (deleted)", "/user", "pid:[1]"},
		{203, 1, "near", config.CacheDir + "-of-another", "/not-mlbatch-dead", "pid:[1]"},
	} {
		p.process(t, made.pid, made.parent, made.name, "S", "1")
		dir := filepath.Join(string(p), strconv.Itoa(made.pid))
		write(t, filepath.Join(dir, "cgroup"), "3:memory:"+made.cgroup+"\n")
		link(t, made.exe, filepath.Join(dir, "exe"))
		write(t, filepath.Join(dir, "cmdline"), made.exe+"\x00"+filepath.Dir(filepath.Dir(made.exe))+"\x00")
		link(t, made.pidSpace, filepath.Join(dir, "ns", "pid"))
	}
	link(t, "pid:[1]", filepath.Join(string(p), "self", "ns", "pid"))
	write(t, filepath.Join(string(p), "self", "mountinfo"), "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"+
		"21 20 8:1 / "+config.StateDir+"/dead/node/my\\040pod rw - tmpfs tmpfs rw\n"+
		"22 20 8:1 "+config.StateDir+"/dead/node /mnt/bound rw - ext4 /dev/sda1 rw\n"+
		"23 20 8:1 / "+config.StateDir+"-other/x rw - tmpfs tmpfs rw\n")
	for _, dir := range []string{
		cgroup("live") + "/pod1", cgroupOf(others), cgroup("dead"), "memory/" + cgroup("dead") + "/pod1", "memory/user",
	} {
		if err := os.MkdirAll(filepath.Join(h.cgroups, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h, config
}

func TestLeaksBelongToNoRunningCluster(t *testing.T) {
	h, config := machine(t)
	got, err := newScan(config, h).leaks()
	if err != nil {
		t.Fatal(err)
	}
	dead := cgroupOf(filepath.Join(config.StateDir, "dead"))
	want := []string{
		"process 201 (kwok (old))",
		"process 202 (python)",
		"namespace pid:[4], held by process 202",
		"mount " + config.StateDir + "/dead/node/my pod",
		"mount /mnt/bound",
		"cgroup " + filepath.Join(h.cgroups, dead),
		"cgroup " + filepath.Join(h.cgroups, "memory", dead),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Two users may choose the same name.
func TestTwoHomesMayHaveAClusterOfTheSameName(t *testing.T) {
	a, _ := newCluster(t)
	b, _ := newCluster(t)
	if a.config.Name != b.config.Name || a.cgroup() == b.cgroup() {
		t.Errorf("%s and %s have the cgroups %s and %s", a.Dir(), b.Dir(), a.cgroup(), b.cgroup())
	}
	emptyDir(t, b.config.StateDir)
	link(t, b.config.StateDir, a.config.StateDir) // as when a home is moved to another disk
	if a.cgroup() != b.cgroup() {
		t.Errorf("the same folder has the cgroups %s and %s", a.cgroup(), b.cgroup())
	}
}

// Users cannot tell which clusters of others run, and have no cgroups themselves.
func TestUsersSeeTheirOwnLeaks(t *testing.T) {
	h, config := machine(t)
	for user, want := range map[int][]string{
		1000 + os.Getuid(): nil,
		os.Getuid():        {"process 201 (kwok (old))", "process 202 (python)", "namespace pid:[4], held by process 202"},
	} {
		if h.user = user; user == 0 {
			continue // root sees all leaks
		}
		got, err := newScan(config, h).leaks()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, "mount "+config.StateDir+"/dead/node/my pod", "mount /mnt/bound")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("user %d: %s", user, diff)
		}
	}
}

func TestUnreadableMountsAreAnError(t *testing.T) {
	_, err := newScan(Config{StateDir: t.TempDir()}, host{proc: proc(t.TempDir())}).leaks()
	wantSentence(t, err, "cannot read the mounts of this machine")
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
