// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"path/filepath"
	"slices"
	"testing"
)

// In a folder, nothing empties the list of processes, as if new ones came all the time.
func TestProcessesOfAContainerMoveBelowItsCgroup(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cgroup.type"), "domain\n")
	write(t, filepath.Join(root, "cgroup.procs"), "1\n42\n0\n")
	if err := emptyCgroup(root); err != nil {
		t.Fatal(err)
	}
	wantText(t, filepath.Join(root, "init", "cgroup.procs"), "42")
}

func TestAKeeperStartsInAnEmptyCgroup(t *testing.T) {
	for mode, moved := range map[Mode]bool{Real: true, Simulated: false} {
		t.Run(string(mode), func(t *testing.T) {
			c, _ := newCluster(t)
			c.config.Mode = mode
			write(t, filepath.Join(c.host.cgroups, "cgroup.type"), "domain\n")
			write(t, filepath.Join(c.host.cgroups, "cgroup.procs"), "42\n")
			write(t, filepath.Join(c.LogDir(), "x.log"), "")
			listener, err := c.listen()
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			wantSentence(t, c.start(t.Context(), listener), "cannot start the cluster in private namespaces") // there is no such program
			if slices.Contains(namesIn(t, c.host.cgroups), "init") != moved {
				t.Errorf("processes are moved: %v, want %v", !moved, moved)
			}
		})
	}
}

func TestOtherCgroupsAreLeftAlone(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"v1":                              {"memory/tasks": "1\n"},
		"the first one of a machine":      {"cgroup.procs": "1\n"},
		"a container's without a process": {"cgroup.type": "domain\n", "cgroup.procs": "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range files {
				write(t, filepath.Join(root, file), text)
			}
			if err := emptyCgroup(root); err != nil {
				t.Fatal(err)
			}
			if all := namesIn(t, root); slices.Contains(all, "init") {
				t.Errorf("there is a new cgroup: %v", all)
			}
		})
	}
}

func TestAProcessThatCannotBeMovedIsNamed(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cgroup.type"), "domain\n")
	write(t, filepath.Join(root, "cgroup.procs"), "42\n")
	write(t, filepath.Join(root, "init", "cgroup.procs", "x"), "") // a folder in place of the file, which root cannot write either
	wantSentence(t, emptyCgroup(root), "cannot move process 42 to another cgroup")
}
