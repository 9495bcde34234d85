// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kernel returns a fake /proc.
func kernel(t *testing.T, files map[string]string) proc {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc(dir)
}

// The fields that are read have distinct values; the others come from a real kernel.
const (
	etcdStat   = "20 (etcd) S 10 20 20 0 -1 4194560 7411 93 1 0 1234 566 70 30 20 0 11 0 500 1289 25 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
	oddStat    = "30 (a (b) c) R 20 30 30 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 900 0 2 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
	zombieStat = "40 (dead) Z 10 40 40 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 900 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)

func TestProcessesAreReadFromProc(t *testing.T) {
	p := kernel(t, map[string]string{
		"uptime":  "350.25 600.10\n",
		"20/stat": etcdStat, "20/cmdline": "/bin/server\x00--data-dir=/x y\x00",
		"30/stat": oddStat, "30/cmdline": "",
		"40/stat":   zombieStat,
		"50/comm":   "ended between two looks",
		"60/stat":   "60 (half",
		"self/stat": etcdStat,
	})
	page := uint64(os.Getpagesize())
	want := []process{
		{pid: 20, parent: 10, program: "/bin/server", began: 5 * time.Second, cpu: 18 * time.Second, ended: time.Second, memory: 25 * page},
		{pid: 30, parent: 20, began: 9 * time.Second, cpu: 10 * time.Millisecond, memory: 2 * page},
	}
	if diff := cmp.Diff(want, p.all(), cmp.AllowUnexported(process{})); diff != "" {
		t.Error(diff)
	}
	if got := p.uptime(); got != 350250*time.Millisecond {
		t.Errorf("it is up for %s", got)
	}
}

func TestAFamilyIsAProcessAndItsDescendants(t *testing.T) {
	all := []process{{pid: 5, parent: 4}, {pid: 2, parent: 1}, {pid: 3, parent: 2}, {pid: 4, parent: 3}, {pid: 6, parent: 1}, {pid: 7, parent: 2}}
	for name, c := range map[string]struct {
		of   int
		want []int
	}{
		"one that has children":   {2, []int{2, 3, 7, 4, 5}},
		"one that has none":       {6, []int{6}},
		"one that has just ended": {8, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, p := range family(all, c.of) {
				got = append(got, p.pid)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHardLinksCountOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	below := diskUsed(dir)
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i)
	}
	if err := os.WriteFile(filepath.Join(dir, "below", "file"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	one := diskUsed(dir)
	if err := os.Link(filepath.Join(dir, "below", "file"), filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	if got := one - below; got < 1<<20 || got > 1<<20+1<<16 {
		t.Errorf("a file of 1 MiB takes %d bytes ", got)
	}
	if got := diskUsed(dir) - one; got > 1<<16 {
		t.Errorf("a second name takes %d bytes", got)
	}
	if got := diskUsed(filepath.Join(dir, "absent")); got != 0 {
		t.Errorf("a folder that is absent takes %d bytes", got)
	}
}
