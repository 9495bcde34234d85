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
)

// processes are those of a cluster: their programs are in its folder, or among the built components.
type processes struct {
	cluster string
	// beside are others, by name, whose programs may be anywhere.
	beside map[string]int
}

// ticks of a second in /proc, on Linux for every architecture.
const ticks = 100

// seconds is the processor time of each program since its start.
func (p processes) seconds(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if !strings.HasPrefix(exe, p.cluster) && !strings.Contains(exe, "/mlbatch/components/") {
			continue
		}
		command, err1 := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		stat, err2 := os.ReadFile(file)
		if err1 != nil || err2 != nil {
			continue // it has ended
		}
		argv0, _, _ := bytes.Cut(command, []byte{0})
		all[filepath.Base(string(argv0))] += used(stat)
	}
	for name, pid := range p.beside {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			t.Fatalf("%s has ended: %v", name, err)
		}
		all[name] = used(stat)
	}
	if len(all) == 0 {
		t.Fatal("no process belongs to the cluster")
	}
	return all
}

// used is utime and stime, which are the 12th and 13th field after the program's name.
func used(stat []byte) float64 {
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks
}
