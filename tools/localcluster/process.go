// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// proc is the path of a proc file system.
type proc string

// keeperOf returns the keeper recorded in a cluster's folder, and whether that same
// process is still running.
func (p proc) keeperOf(dir string) (plan.Keeper, bool) {
	var k plan.Keeper
	if plan.Read(dir, plan.KeeperFile, &k) != nil {
		return k, false
	}
	start, err := p.startTime(k.PID)
	return k, err == nil && start == k.StartTime && p.boot() == k.Boot
}

// keeper identifies a process.
func (p proc) keeper(pid int) (plan.Keeper, error) {
	start, err := p.startTime(pid)
	return plan.Keeper{PID: pid, Boot: p.boot(), StartTime: start}, err
}

// boot is an id that changes with every boot.
func (p proc) boot() string {
	id, _ := os.ReadFile(filepath.Join(string(p), "sys", "kernel", "random", "boot_id"))
	return strings.TrimSpace(string(id))
}

// startTime is when a process started, in clock ticks since boot. A zombie counts as exited
// if it has one thread: a process is a zombie as soon as its first thread has ended, and the
// kernel ends the rest of a PID namespace with the last thread of its process 1.
func (p proc) startTime(pid int) (string, error) {
	fields := p.stat(pid)
	if len(fields) < 20 || fields[0] == "Z" && fields[17] == "1" {
		return "", fmt.Errorf("process %d has exited", pid)
	}
	return fields[19], nil
}

// parent is the pid of a process's parent, or 0.
func (p proc) parent(pid int) int {
	fields := p.stat(pid)
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}

// stat returns the fields of /proc/PID/stat starting at the third, the state. The second
// field is a name that may contain spaces and parentheses; the last parenthesis ends it.
func (p proc) stat(pid int) []string {
	data, err := os.ReadFile(filepath.Join(string(p), strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
}
