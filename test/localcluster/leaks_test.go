// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// leftByOthers is what existed on this machine before the tests.
var leftByOthers []string

// leaks returns what clusters have left below either folder, except what existed before.
func leaks() ([]string, error) {
	var all []string
	for _, c := range everyCluster() {
		left, err := localcluster.Leaks(c.described().Config())
		if err != nil {
			return nil, err
		}
		for _, leak := range left {
			if !slices.Contains(all, leak) && !slices.Contains(leftByOthers, leak) {
				all = append(all, leak)
			}
		}
	}
	return all, nil
}

func mustLeaks(t *testing.T) []string {
	t.Helper()
	left, err := leaks()
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// The check for leaks after every 'down' must be able to find them.
func TestWhatIsLeftIsFound(t *testing.T) {
	c := modes[0].second()
	program := filepath.Join(filepath.Dir(c.dir()), "planted", "left-behind")
	data, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	left := exec.Command(program, "600")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	cgroup := filepath.Join(cgroups(), "mlbatch-planted-01234567")
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	found := mustLeaks(t)
	c.wantRefusal(t, "clusters left the above behind", "leaks")
	_ = left.Process.Kill()
	_ = left.Wait()
	if err := os.Remove(cgroup); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"process " + strconv.Itoa(left.Process.Pid) + " (left-behind)", "cgroup " + cgroup} {
		if !slices.Contains(found, want) {
			t.Errorf("%q was not found, only %q", want, found)
		}
	}
	if found := mustLeaks(t); len(found) > 0 {
		t.Errorf("nothing is left, but found %q", found)
	}
}

// cgroups returns the top folder of a cgroup hierarchy.
func cgroups() string {
	if exists("/sys/fs/cgroup/memory") {
		return "/sys/fs/cgroup/memory"
	}
	return "/sys/fs/cgroup"
}
