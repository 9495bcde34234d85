// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/setup"
)

// pids returns the pids of all programs.
func (c cluster) pids(t *testing.T) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, program := range c.plan(t).Programs {
		pids[program.Name] = c.pidOf(t, program)
	}
	return pids
}

func TestAProgramOfWhichTheCheckoutHasAnotherIsReplaced(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := cover(checkout, other); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(other, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	inEachMode(t, func(t *testing.T, m mode) {
		c := running(t, m.main())
		wantKept, before, restarts := c.keepObject(t), c.pids(t), c.status(t).Restarts
		// The name of a module's build depends on all of its files.
		change(t, "tools/artifacts/components/etcd/note.txt", "another")
		said := c.mustRun(t, "up", "--checkout="+other)
		if !strings.Contains(said, "\netcd "+versions.LocalCluster.Etcd+" is another build\n") {
			t.Errorf("it says\n%s", said)
		}
		after := c.pids(t)
		if after["etcd"] == before["etcd"] {
			t.Error("the old etcd still runs")
		}
		before["etcd"] = after["etcd"]
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("other programs were restarted, too: %s", diff)
		}
		if diff := cmp.Diff(restarts, c.status(t).Restarts); diff != "" {
			t.Errorf("restarts were counted: %s", diff)
		}
		wantKept(t)

		change(t, "tools/localcluster/keeper/another.go", "package main\n\nfunc init() { println() }\n")
		c.wantRefusal(t, "has another keeper than this checkout, and this cannot change while it runs", "up", "--checkout="+other)
		if err := os.Remove(filepath.Join(other, "tools/localcluster/keeper/another.go")); err != nil { // for the next mode
			t.Fatal(err)
		}

		w := c.start(t, "up") // back to the version before
		w.reaches(t, c, point{name: "the change is known", line: "another build"})
		kill(t, w.cmd.Process.Pid)
		_, _ = w.ends()
		c.mustRun(t, "up")
		if now := c.pids(t); now["etcd"] == after["etcd"] || now["etcd"] == 0 {
			t.Errorf("the etcd of the other checkout still runs: its pid was %d and is %d", after["etcd"], now["etcd"])
		}
		c.wantHealthy(t)
		wantKept(t)
	})
}

// change writes a file in the other checkout.
func change(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(other, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
