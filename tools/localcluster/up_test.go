// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestAMistypedCheckoutLosesNoLogs(t *testing.T) {
	c, _ := newCluster(t)
	c.config.Checkout = t.TempDir()
	log := filepath.Join(c.LogDir(), "kubelet.log")
	write(t, log, "why it failed")
	wantSentence(t, c.Up(t.Context()), "is not inside a checkout of MLBatch", "--checkout")
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the log is lost: %v", err)
	}
}

func TestAFailedBuildLosesNoLogs(t *testing.T) {
	c, _ := newCluster(t)
	c.config.Checkout = checkout(t) // its modules contain no programs
	log := filepath.Join(c.LogDir(), "kubelet.log")
	write(t, log, "why it failed")
	if err := c.Up(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "cannot build kubernetes: ") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the log is lost: %v", err)
	}
}

func TestBuildFillsTheCacheAndMakesNoCluster(t *testing.T) {
	c, _ := newCluster(t)
	c.config.Mode, c.config.Checkout = Simulated, checkout(t)
	fakeGo(t)
	if err := c.Build(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"server", "kube-apiserver", "kwok"} {
		if found, _ := filepath.Glob(filepath.Join(c.config.CacheDir, "components", "*", program)); len(found) != 1 {
			t.Errorf("%s is %d times in the cache", program, len(found))
		}
	}
	if left := namesIn(t, c.config.StateDir); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// fakeGo builds an empty program of each package.
func fakeGo(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), `#!/bin/sh
out=$3
[ -d "$out" ] || { : > "$out"; exit; } # a program of the checkout
for word; do
	case "$word" in -*) ;; *.*/*/*) : > "$out/$(basename "${word%/v3}")";; esac
done
`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestANewClusterReplacesTheRemains(t *testing.T) {
	c, _ := newCluster(t)
	c.config.Checkout = checkout(t)
	write(t, filepath.Join(c.LogDir(), "old.log"), "")
	write(t, filepath.Join(c.newDir(), "bin", "keeper"), "new")
	if err := c.prepare(built{dir: c.newDir(), bins: fakeBinaries(t), tools: "/tools"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.LogDir(), "old.log")); err == nil {
		t.Error("remains of the earlier cluster are there")
	}
	for _, file := range []string{"bin/keeper", plan.File} {
		if _, err := os.Stat(filepath.Join(c.Dir(), file)); err != nil {
			t.Error(err)
		}
	}
}

func TestAnErrorOfAStartedClusterNamesTheLogs(t *testing.T) {
	c, _ := newCluster(t)
	c.config.Checkout = checkout(t)
	if err := c.prepare(built{dir: emptyDir(t, c.newDir()), bins: fakeBinaries(t), tools: "/tools"}); err != nil {
		t.Fatal(err)
	}
	// There is no keeper in bin, so starting it fails.
	listener, err := c.preflight(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	err = c.bringUp(t.Context(), listener)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot start the cluster") || !strings.HasSuffix(err.Error(), "\nlogs are in "+c.LogDir()) {
		t.Errorf("got %v", err)
	}
}

// The command that started the keeper was killed before it wrote the kubeconfig: the next
// one does, with the keeper's port.
func TestUpResumesARunningCluster(t *testing.T) {
	c, _ := newCluster(t)
	pretendRunning(t, c)
	write(t, filepath.Join(c.Dir(), plan.File), "{}")
	if err := errors.Join(c.writeCredentials(), c.useRunningConfig(), plan.Write(c.Dir(), plan.StatusFile, plan.Status{Ready: true})); err != nil {
		t.Fatal(err)
	}
	err := c.complete(t.Context()) // fails at the images, which do not exist
	if err == nil || !strings.Contains(err.Error(), "cannot load the image archive") {
		t.Errorf("got %v", err)
	}
	if c.config.SimulatedNodes != 3 {
		t.Errorf("%d nodes are simulated, want those that the cluster was started with", c.config.SimulatedNodes)
	}
	kubeconfig, err := c.Kubeconfig()
	if err != nil || !strings.Contains(string(kubeconfig), "https://127.0.0.1:4711") {
		t.Errorf("the kubeconfig is %s (%v)", kubeconfig, err)
	}
	if !c.Running() {
		t.Error("the running cluster was ended")
	}
}

func TestARunningClusterKeepsItsConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		asked Config
		want  string
	}{
		"another port":          {Config{Port: 5}, `cluster "unit-x" runs with --port=4711, not 5; omit the flag, or remove the cluster first with: localcluster down --name=unit-x`},
		"more nodes":            {Config{SimulatedNodes: 4}, "runs with --simulated-nodes=3, not 4"},
		"no nodes":              {Config{SimulatedNodes: -1}, "runs with --simulated-nodes=3, not 0"},
		"more for the platform": {Config{PlatformNodes: 2, Mode: Simulated}, "has nodes for the platform: 1, not 2, and this cannot change while it runs"},
		"another Kubernetes":    {Config{Kubernetes: "1.30"}, "runs with --kubernetes=1.34, not 1.30"},
		"what it has":           {Config{Port: 4711, SimulatedNodes: 3, Kubernetes: "1.34"}, ""},
		"whatever it has":       {Config{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			pretendRunning(t, cluster)
			cluster.asked = c.asked
			asked, err := c.asked.completed()
			if err != nil {
				t.Fatal(err)
			}
			cluster.config.Kubernetes = asked.Kubernetes
			if c.want == "" {
				if err := cluster.useRunningConfig(); err != nil {
					t.Error(err)
				}
				return
			}
			wantSentence(t, cluster.Up(t.Context()), c.want)
		})
	}
}

func TestUpFollowsTheKeepersStatus(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		status  *plan.Status
		running bool
		want    string
	}{
		"all programs are ready":            {t.Context(), &plan.Status{Revision: 1, Ready: true}, true, ""},
		"all were ready in an earlier plan": {cancelled, &plan.Status{Ready: true}, true, "context canceled"},
		"one has ended since": {
			cancelled, &plan.Status{Revision: 1, Ready: true, Failing: map[string]string{"etcd": "ended with exit status 1"}}, true,
			"context canceled",
		},
		"the keeper gave up":                 {t.Context(), &plan.Status{Revision: 1, Error: "etcd did not become ready"}, true, "etcd did not become ready"},
		"the keeper gave up an earlier plan": {cancelled, &plan.Status{Error: "etcd did not become ready"}, true, "context canceled"},
		"the keeper failed, and has exited":  {t.Context(), &plan.Status{Error: "etcd did not become ready"}, false, "etcd did not become ready"},
		"the keeper exited without an error": {t.Context(), nil, false, "the cluster's keeper exited; see keeper.log"},
		"the user interrupts":                {cancelled, &plan.Status{Waiting: "etcd"}, true, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			write(t, filepath.Join(cluster.Dir(), plan.File), `{"revision": 1}`)
			if c.running {
				pretendRunning(t, cluster)
			}
			if c.status != nil {
				if err := plan.Write(cluster.Dir(), plan.StatusFile, c.status); err != nil {
					t.Fatal(err)
				}
			}
			err := cluster.awaitKeeper(c.ctx)
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAFailingProgramIsNamed(t *testing.T) {
	err := failing(plan.Status{Failing: map[string]string{"etcd": "ended with exit status 1"}, Restarts: map[string]int{"etcd": 7}})
	wantSentence(t, err, "etcd keeps failing: it ended with exit status 1 after 7 restarts; see etcd.log")
}

func TestProgressNamesEachProgramOnce(t *testing.T) {
	c, progress := newCluster(t)
	pretendRunning(t, c)
	write(t, filepath.Join(c.Dir(), plan.File), "{}")
	if err := plan.Write(c.Dir(), plan.StatusFile, plan.Status{Waiting: "kubelet"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.awaitKeeper(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if want := "starting kubelet\n"; progress.String() != want {
		t.Errorf("progress is %q, want %q", progress, want)
	}
}

func TestDownReportsWhatItDid(t *testing.T) {
	c, progress := newCluster(t)
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	if want := "there is no cluster \"unit-x\"\n"; progress.String() != want {
		t.Errorf("down of a cluster that never was says %q, want %q", progress, want)
	}
	for name, leave := range map[string]string{
		"its folder":                   filepath.Join(c.Dir(), "log"),
		"a cgroup, with its children":  filepath.Join(c.host.cgroups, "memory", c.cgroup(), "pod", "container"),
		"a cgroup of the v2 hierarchy": filepath.Join(c.host.cgroups, c.cgroup()),
		"a folder being filled":        filepath.Join(c.newDir(), "bin"),
	} {
		t.Run("what is left is "+name, func(t *testing.T) {
			progress.Reset()
			emptyDir(t, leave)
			other := emptyDir(t, filepath.Join(c.host.cgroups, "memory", "mlbatch-unit-x-of-another"))
			if err := c.Down(); err != nil {
				t.Fatal(err)
			}
			if want := "cluster \"unit-x\" is gone\n"; progress.String() != want {
				t.Errorf("down says %q, want %q", progress, want)
			}
			if _, err := os.Stat(leave); err == nil {
				t.Error("it is still there")
			}
			if c.exists() {
				t.Error("the cluster still exists")
			}
			if _, err := os.Stat(other); err != nil {
				t.Errorf("something of another cluster is gone: %v", err)
			}
		})
	}
}

// A leaked cgroup may belong to a cluster in another folder that no longer exists.
func TestDownRemovesCgroupsOfDeadClustersOfTheSameName(t *testing.T) {
	h, config := machine(t)
	for name, c := range map[string]struct {
		name    string
		removes bool
	}{
		"what a dead cluster of another folder has left goes": {"dead", true},
		"what belongs to a running one stays":                 {"other", false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, progress := newCluster(t)
			cluster.config.Name, cluster.host.proc, cluster.host.cgroups = c.name, h.proc, h.cgroups
			if err := cluster.Down(); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "cluster %q is gone\n", false: "there is no cluster %q\n"}[c.removes]
			if want = fmt.Sprintf(want, c.name); progress.String() != want {
				t.Errorf("down says %q, want %q", progress, want)
			}
		})
	}
	leaks, err := newScan(config, h).leaks()
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range leaks {
		if strings.HasPrefix(leak, "cgroup ") {
			t.Errorf("after that there is still a leak: %s", leak)
		}
	}
	if _, err := os.Stat(filepath.Join(h.cgroups, cgroupOf(filepath.Join(config.StateDir, "live")))); err != nil {
		t.Errorf("something of the running cluster is gone: %v", err)
	}
}

func emptyDir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAStoppedClusterKeepsItsLogs(t *testing.T) {
	c, _ := newCluster(t)
	keeper := exec.Command("sleep", "60")
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	record, err := c.host.proc.keeper(keeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	emptyDir(t, c.LogDir())
	emptyDir(t, filepath.Join(c.host.cgroups, "memory", c.cgroup(), "pod"))
	if err := plan.Write(c.Dir(), plan.KeeperFile, record); err != nil {
		t.Fatal(err)
	}
	if !c.Running() {
		t.Fatal("a cluster whose keeper lives is not running")
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if left := cgroupsNamed(c.host.cgroups, c.cgroup()); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if _, err := os.Stat(c.LogDir()); err != nil {
		t.Errorf("the logs are gone: %v", err)
	}
	if err := keeper.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the keeper ended with %v", err)
	}
}

func TestCgroupsAreRemovedChildrenFirst(t *testing.T) {
	c, _ := newCluster(t)
	emptyDir(t, filepath.Join(c.host.cgroups, "memory", c.cgroup(), "pod", "container"))
	if err := removeCgroups(cgroupsNamed(c.host.cgroups, c.cgroup())); err != nil {
		t.Error(err)
	}
	busy := filepath.Join(c.host.cgroups, "memory", c.cgroup(), "pod")
	write(t, filepath.Join(busy, "process"), "") // stands for a process that has not exited yet
	if err := removeCgroups(cgroupsNamed(c.host.cgroups, c.cgroup())); err == nil || !strings.Contains(err.Error(), busy) {
		t.Errorf("a busy cgroup gives %v", err)
	}
}
