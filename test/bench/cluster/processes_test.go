// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/bench"
)

// processes are those of a cluster: their programs are in its folder, or among the built components.
type processes struct {
	cluster string
	// beside are others, by name, whose programs may be anywhere.
	beside map[string]int
}

// ticks of a second in /proc, on Linux for every architecture.
const ticks = 100

// each visits all processes that run: their names, and their folders in /proc.
func (p processes) each(t *testing.T, visit func(name, dir string)) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, dir := range dirs {
		exe, _ := os.Readlink(filepath.Join(dir, "exe"))
		if !strings.HasPrefix(exe, p.cluster) && !strings.Contains(exe, "/mlbatch/components/") {
			continue
		}
		command, err1 := os.ReadFile(filepath.Join(dir, "cmdline"))
		environ, err2 := os.ReadFile(filepath.Join(dir, "environ"))
		if err1 != nil || err2 != nil {
			continue // it has ended
		}
		argv0, _, _ := bytes.Cut(command, []byte{0})
		visit(bench.ProcessName(exe, string(argv0), string(environ)), dir)
		found = true
	}
	if !found {
		t.Fatal("no process belongs to the cluster")
	}
	for name, pid := range p.beside {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		if _, err := os.Stat(dir); err != nil {
			t.Fatalf("%s has ended: %v", name, err)
		}
		visit(name, dir)
	}
}

// seconds is the processor time of each program since its start.
func (p processes) seconds(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	p.each(t, func(name, dir string) {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat")) // nothing if it has ended
		all[name] += used(stat)
	})
	return all
}

// used is utime and stime, which are the 12th and 13th field after the program's name.
func used(stat []byte) float64 {
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks
}

// forgetMemory lets Linux forget the most memory of each process until now: see clear_refs in proc(5).
func (p processes) forgetMemory(t *testing.T) {
	t.Helper()
	p.each(t, func(name, dir string) {
		if err := os.WriteFile(filepath.Join(dir, "clear_refs"), []byte("5"), 0); err != nil && !os.IsNotExist(err) {
			t.Fatalf("cannot forget the memory of %s: %v", name, err)
		}
	})
}

// mostMemory is the most resident memory of each program since it was forgotten, in MiB.
func (p processes) mostMemory(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	p.each(t, func(name, dir string) {
		status, _ := os.ReadFile(filepath.Join(dir, "status")) // nothing if it has ended
		all[name] += bench.MostMemory(string(status))
	})
	return all
}
