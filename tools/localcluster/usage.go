// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a process as the kernel describes it.
type process struct {
	pid, parent int
	// program is its first argument: the path it was started with.
	program string
	zombie  bool
	began   time.Duration // since boot
	// cpu is its own processor time, ended the processor time of its exited children.
	cpu, ended time.Duration
	memory     uint64 // resident bytes
}

// tick is the unit in which the kernel reports times to user space.
const tick = time.Second / 100

// readStat parses the fields of /proc/PID/stat starting at the third.
func readStat(fields []string) (p process, ok bool) {
	if len(fields) < 22 {
		return process{}, false
	}
	number := func(field int) int {
		n, _ := strconv.Atoi(fields[field-3]) // as proc(5) numbers them
		return n
	}
	ticks := func(fields ...int) (sum time.Duration) {
		for _, f := range fields {
			sum += time.Duration(number(f)) * tick
		}
		return sum
	}
	return process{
		zombie: fields[0] == "Z", parent: number(4), cpu: ticks(14, 15), ended: ticks(16, 17), began: ticks(22),
		memory: uint64(max(0, number(24))) * uint64(os.Getpagesize()),
	}, true
}

// all returns the running processes.
func (p proc) all() []process {
	var living []process
	dirs, _ := filepath.Glob(filepath.Join(string(p), "[0-9]*"))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		one, ok := readStat(p.stat(pid))
		if err != nil || !ok || one.zombie {
			continue // it has exited meanwhile
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		program, _, _ := bytes.Cut(command, []byte{0})
		one.pid, one.program = pid, string(program)
		living = append(living, one)
	}
	return living
}

// uptime is the time since boot.
func (p proc) uptime() time.Duration {
	data, _ := os.ReadFile(filepath.Join(string(p), "uptime"))
	first, _, _ := strings.Cut(string(data), " ")
	seconds, _ := strconv.ParseFloat(first, 64)
	return time.Duration(seconds * float64(time.Second))
}

// family returns a process and its descendants.
func family(all []process, pid int) []process {
	children := map[int][]process{}
	var members []process
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if p.pid == pid {
			members = append(members, p)
		}
	}
	for i := 0; i < len(members); i++ {
		members = append(members, children[members[i].pid]...)
	}
	return members
}

// diskUsed is the disk space of a folder. It counts hard links once, and ignores files
// that disappear meanwhile.
func diskUsed(dir string) uint64 {
	var used uint64
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && (s.Nlink == 1 || !seen[s.Ino]) {
			seen[s.Ino] = true
			used += uint64(s.Blocks) * 512
		}
		return nil
	})
	return used
}
