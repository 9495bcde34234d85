// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Leaks lists what clusters left behind on this machine, a line each: processes,
// namespaces, mounts and cgroups that belong to no running cluster. Users other than
// root can only have simulated clusters, and only see their own leaks.
func Leaks(config Config) ([]string, error) {
	config, err := config.completed()
	if err != nil {
		return nil, err
	}
	return newScan(config, thisHost()).leaks()
}

// scan looks for leaks. It knows running clusters by the pid of their keeper and by the
// name of their cgroup.
type scan struct {
	host
	config  Config
	keepers map[int]bool
	running map[string]bool
}

// newScan finds the keepers of all users in all state folders: each was started as
// DIR/bin/keeper DIR.
func newScan(config Config, host host) scan {
	s := scan{host: host, config: config, keepers: map[int]bool{}, running: map[string]bool{}}
	files, _ := filepath.Glob(filepath.Join(string(host.proc), "[0-9]*", "cmdline"))
	for _, file := range files {
		command, _ := os.ReadFile(file)
		args := strings.Split(string(command), "\x00")
		if len(args) < 2 || args[0] != keeperProgram(args[1]) {
			continue
		}
		if keeper, alive := host.proc.keeperOf(args[1]); alive && strconv.Itoa(keeper.PID) == filepath.Base(filepath.Dir(file)) {
			s.keepers[keeper.PID] = true
			s.running[cgroupOf(args[1])] = true
		}
	}
	return s
}

func (s scan) leaks() ([]string, error) {
	mounts, err := s.mounts()
	if err != nil {
		return nil, err
	}
	leaks := append(s.processes(), mounts...)
	for _, dir := range s.cgroupsLeft(cgroupPrefix + "*") {
		leaks = append(leaks, "cgroup "+dir)
	}
	return leaks, nil
}

// processes finds programs of clusters by the folder of their binary or by their cgroup,
// and the namespaces that they keep alive.
func (s scan) processes() []string {
	var leaks []string
	own, _ := os.Readlink(filepath.Join(string(s.proc), "self", "ns", "pid"))
	dirs, _ := filepath.Glob(filepath.Join(string(s.proc), "[0-9]*"))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !s.sees(dir) || !s.ofCluster(dir) || s.belongsToKeeper(pid) {
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

// sees reports whether the user may read enough of a process to tell a leaked one from
// one of a running cluster.
func (s scan) sees(dir string) bool {
	var process unix.Stat_t
	return s.user == 0 || unix.Stat(dir, &process) == nil && int(process.Uid) == s.user
}

// ofCluster reports whether a process is a component or runs in a pod.
func (s scan) ofCluster(dir string) bool {
	exe, _ := os.Readlink(filepath.Join(dir, "exe"))
	for _, root := range []string{s.config.CacheDir, s.config.StateDir} {
		if strings.HasPrefix(exe, root+"/") && !isUserTool(exe) {
			return true
		}
	}
	cgroups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
	return strings.Contains(string(cgroups), ":/"+cgroupPrefix)
}

// isUserTool reports whether users run a binary outside clusters.
func isUserTool(exe string) bool {
	return slices.Contains(userTools, strings.TrimSuffix(filepath.Base(exe), " (deleted)"))
}

// belongsToKeeper reports whether a process descends from a running keeper.
func (s scan) belongsToKeeper(pid int) bool {
	for pid > 1 {
		if s.keepers[pid] {
			return true
		}
		pid = s.proc.parent(pid)
	}
	return false
}

// unescape decodes the kernel's escapes in paths of mounts.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mounts finds mounts below the clusters' folders. A running cluster mounts in its own
// namespace, so any mount in this one is a leak.
func (s scan) mounts() ([]string, error) {
	f, err := os.Open(filepath.Join(string(s.proc), "self", "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the mounts of this machine: %w", err)
	}
	defer f.Close()
	var leaks []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		source, target := unescape.Replace(fields[3]), unescape.Replace(fields[4])
		if strings.HasPrefix(target, s.config.StateDir+"/") || strings.HasPrefix(source, s.config.StateDir+"/") {
			leaks = append(leaks, "mount "+target)
		}
	}
	return leaks, lines.Err()
}

// cgroupsLeft returns the cgroups that match a name or pattern and belong to no running cluster.
func (s scan) cgroupsLeft(pattern string) []string {
	if s.user != 0 {
		return nil
	}
	return slices.DeleteFunc(cgroupsNamed(s.cgroups, pattern), func(dir string) bool { return s.running[filepath.Base(dir)] })
}
