// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// Leaks lists what clusters have left on this machine that belongs to no
// running one: processes, namespaces, mounts and cgroups, a line each.
func Leaks(config Config) ([]string, error) {
	config, err := config.Default()
	if err != nil {
		return nil, err
	}
	s := scan{config: config, keepers: map[int]bool{}, running: map[string]bool{}}
	s.findRunning()
	mounts, err := s.mounts()
	if err != nil {
		return nil, err
	}
	return append(append(s.processes(), mounts...), s.cgroups()...), nil
}

// scan knows which clusters run, by the pid of their keeper and by name.
type scan struct {
	config  Config
	keepers map[int]bool
	running map[string]bool
}

func (s scan) findRunning() {
	files, _ := filepath.Glob(filepath.Join(s.config.StateDir, "*", plan.KeeperFile))
	for _, file := range files {
		dir := filepath.Dir(file)
		if keeper, alive := keeperOf(dir); alive {
			s.keepers[keeper.PID] = true
			s.running[cgroupPrefix+filepath.Base(dir)] = true
		}
	}
}

// processes finds programs of a cluster by where their binary lies or by the
// cgroup they are in, and the namespaces that they keep alive.
func (s scan) processes() []string {
	var leaks []string
	own, _ := os.Readlink("/proc/self/ns/pid")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !s.ofCluster(dir) || s.kept(pid) {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "comm"))
		leaks = append(leaks, fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(command))))
		if ns, err := os.Readlink(filepath.Join(dir, "ns", "pid")); err == nil && ns != own {
			leaks = append(leaks, fmt.Sprintf("namespace %s, held by process %d", ns, pid))
		}
	}
	return leaks
}

// ofCluster reports whether a process is a component or runs in a pod.
func (s scan) ofCluster(dir string) bool {
	exe, _ := os.Readlink(filepath.Join(dir, "exe"))
	for _, root := range []string{s.config.CacheDir, s.config.StateDir} {
		if strings.HasPrefix(exe, root+"/") {
			return true
		}
	}
	cgroups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
	return strings.Contains(string(cgroups), ":/"+cgroupPrefix)
}

// kept reports whether a process descends from a living keeper.
func (s scan) kept(pid int) bool {
	for pid > 1 {
		if s.keepers[pid] {
			return true
		}
		pid = parent(pid)
	}
	return false
}

func parent(pid int) int {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}

// mounts finds mounts below the clusters' folders. A running cluster's mounts
// are in its own namespace, so that any seen here are left over.
func (s scan) mounts() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot read the mounts of this machine: %w", err)
	}
	defer f.Close()
	var leaks []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && (strings.HasPrefix(fields[4], s.config.StateDir+"/") || strings.HasPrefix(fields[3], s.config.StateDir+"/")) {
			leaks = append(leaks, "mount "+fields[4])
		}
	}
	return leaks, lines.Err()
}

func (s scan) cgroups() []string {
	var leaks []string
	for _, dir := range cgroupsNamed(cgroupPrefix + "*") {
		if !s.running[filepath.Base(dir)] {
			leaks = append(leaks, "cgroup "+dir)
		}
	}
	return leaks
}
