// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADebianMountsItsSharesAndRunsTheSteps(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	shares := []share{{tag: "checkout", inside: "/root/mlbatch"}, {tag: "carried", inside: "/mnt/carried", writable: true}}
	if err := settle(root, shares); err != nil {
		t.Fatal(err)
	}
	wantFstab := `/dev/vda / ext4 defaults 0 1
checkout /root/mlbatch 9p trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose 0 0
carried /mnt/carried 9p trans=virtio,version=9p2000.L,msize=512000,rw 0 0
overlay /root/.cache/go-build overlay lowerdir=/mnt/go-build,upperdir=/var/go-build/changed,workdir=/var/go-build/working,x-systemd.requires-mounts-for=/mnt/go-build 0 0
`
	if diff := cmp.Diff(wantFstab, read(t, root, "etc/fstab")); diff != "" {
		t.Error(diff)
	}
	wanted := "etc/systemd/system/multi-user.target.wants/mlbatch.service"
	if _, err := os.Readlink(filepath.Join(root, wanted)); err != nil {
		t.Errorf("systemd ignores what is not a link: %v", err)
	}
	unit := read(t, root, wanted)
	for _, want := range []string{
		"RequiresMountsFor=/root/.cache/go-build /root/mlbatch /mnt/carried\n", "ExecStart=/mnt/carried/vm inside\n", "FailureAction=poweroff\n",
	} {
		if !strings.Contains(unit, want) {
			t.Errorf("the service lacks %q:\n%s", want, unit)
		}
	}
	for _, dir := range []string{"var/go-build/changed", "var/go-build/working"} {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Error(err)
		}
	}
}

func TestAKernelIsTakenIfThereIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		kernels []string
		problem string
	}{
		"one":  {[]string{"vmlinuz-6.1"}, ""},
		"none": {nil, "there are 0 files vmlinuz-*, want 1"},
		"two":  {[]string{"vmlinuz-6.1", "vmlinuz-6.12"}, "there are 2 files vmlinuz-*, want 1"},
	} {
		t.Run(name, func(t *testing.T) {
			boot := t.TempDir()
			for _, kernel := range c.kernels {
				if err := os.WriteFile(filepath.Join(boot, kernel), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			problem := ""
			if err := moveOnly(boot, "vmlinuz-*", filepath.Join(boot, "kernel")); err != nil {
				problem = err.Error()
			}
			if problem != c.problem {
				t.Errorf("problem %q, want %q", problem, c.problem)
			}
		})
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
