// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package nodes_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// switchOff kills all pods of a node at once. The program that runs them is stopped like its clock: it
// reports nothing any more, and the cluster's keeper, which would restart it, does not notice.
func (s *site) switchOff(node string) {
	s.Helper()
	program := s.programOf(node)
	s.Must(unix.Kill(program, unix.SIGSTOP))
	pods := 0
	for _, p := range processes() {
		if p.parent != program {
			continue
		}
		if err := unix.Kill(p.pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			s.Fatal(err)
		}
		pods++
	}
	if pods == 0 {
		s.Fatalf("no pod ran on %s", node)
	}
	s.Logf("%s is off, with its %d pods", node, pods)
}

// switchOn ends the stopped program. The keeper starts another one, which knows nothing of the processes before.
func (s *site) switchOn(node string) {
	s.Helper()
	s.Must(unix.Kill(s.programOf(node), unix.SIGKILL))
}

// programOf returns the pid of the program that is a node.
func (s *site) programOf(node string) int {
	s.Helper()
	path := filepath.Join(s.cluster.Dir(), "bin", "processnode"+strings.TrimPrefix(node, clusterName))
	for _, p := range processes() {
		if p.program == path {
			return p.pid
		}
	}
	s.Fatalf("%s does not run", path)
	return 0
}

type process struct {
	pid, parent int
	program     string
}

func processes() (all []process) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		command, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(folder, "stat"))
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			continue // it has ended
		}
		program, _, _ := strings.Cut(string(command), "\x00")
		pid, _ := strconv.Atoi(filepath.Base(folder))
		parent, _ := strconv.Atoi(fields[1])
		all = append(all, process{pid, parent, program})
	}
	return all
}
