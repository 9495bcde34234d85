// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
)

// upPoints are the points at which 'up' is killed, in the order in which it reaches them.
func upPoints(m mode) []point {
	points := []point{
		{name: "a component is built", line: "etcd: building"},
		{name: "the folder is filled", file: inNew("bin/keeper")},
		{name: "the folder is there", file: inFolder("config")},
		{name: "the keeper is on record", file: inFolder("keeper.json")},
		// It may be past the first program already, which the previous 'up' started.
		{name: "the keeper starts a program", line: "starting "},
		{name: "the keeper starts the last program", line: "starting kwok"},
		{name: "the cluster can be used", file: inFolder("kubeconfig")},
	}
	if m.real {
		points = append(points, point{name: "images are loaded", line: "loaded images.tar"})
	}
	return append(points, point{name: "nodes are awaited", line: "waiting for"})
}

// Each 'up' continues from what the previous one has left.
func TestUpThatIsKilledAnywhereIsCompletedByTheNext(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := m.second()
		c.mustRun(t, "down")
		forget(t, "etcd")
		for _, p := range upPoints(m) {
			t.Run(p.name, func(t *testing.T) { c.killedAt(t, p, c.upFlags()...) })
		}
		c.mustRun(t, c.upFlags()...)
		c.wantHealthy(t)
	})
}

func TestAClusterWhoseKeeperIsKilledIsGoneAndCanBeMadeAgain(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := running(t, m.second())
		c.killKeeper(t)
		c.mustRun(t, c.upFlags()...)
		c.wantHealthy(t)
	})
}

// killKeeper kills the keeper of a cluster, and checks what is left.
func (c cluster) killKeeper(t *testing.T) {
	t.Helper()
	kill(t, c.keeper(t))
	eventually(t, "nothing but empty cgroups is left", func(context.Context) error {
		if c.described().Running() { // a signal is delivered before the process has ended
			return errors.New("the keeper still ends")
		}
		for _, leak := range mustLeaks(t) {
			if !strings.HasPrefix(leak, "cgroup ") || !strings.Contains(leak, "mlbatch-"+c.name+"-") {
				return errors.New(leak)
			}
		}
		return nil
	})
}

// forget removes a component from the cache, so that it has to be built.
func forget(t *testing.T, component string) {
	t.Helper()
	dir, err := filecache.UserDir()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := filepath.Glob(filepath.Join(dir, "components", component+"-*"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s is not in the cache (%v)", component, err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(entry); err != nil {
			t.Fatal(err)
		}
	}
}

// wantNothingRunning fails if anything but files is left of a cluster.
func (c cluster) wantNothingRunning(t *testing.T) {
	t.Helper()
	if c.described().Running() {
		t.Error("the cluster runs")
	}
	if left := mustLeaks(t); left != nil {
		t.Errorf("the cluster has left %q", left)
	}
}

// wantGone fails if anything is left of a cluster.
func (c cluster) wantGone(t *testing.T) {
	t.Helper()
	c.wantNothingRunning(t)
	files, err := os.ReadDir(filepath.Dir(c.dir()))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.Trim(file.Name(), "."); name == c.name || strings.HasPrefix(name, c.name+".") {
			t.Errorf("%s is left", file.Name())
		}
	}
}
