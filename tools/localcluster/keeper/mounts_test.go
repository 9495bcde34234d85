// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// asNode has the folder in which the test program, in namespaces of its own, covers mounts.
const asNode = "MLBATCH_TEST_AS_NODE"

func TestMain(m *testing.M) {
	folder := os.Getenv(asNode)
	if folder == "" {
		os.Exit(m.Run())
	}
	if err := cover(folder); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	os.Stdout.Write(mounts)
}

// cover has two mounts below the folder that is covered, and one holds what is bound there.
func cover(folder string) error {
	failed := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	for _, name := range []string{"hidden", "kept"} {
		dir := filepath.Join(folder, name)
		failed = errors.Join(failed, os.Mkdir(dir, 0o755), unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	}
	source, target := filepath.Join(folder, "kept", "source"), filepath.Join(folder, "target")
	failed = errors.Join(failed, os.Mkdir(source, 0o755), os.WriteFile(filepath.Join(source, "file"), nil, 0o600),
		bindAll([]plan.Bind{{Source: source, Target: target}}))
	_, err := os.Stat(filepath.Join(target, "file"))
	return errors.Join(failed, err)
}

// The kubelet takes the first mount of a device for its size, also if it cannot see it.
func TestNothingIsMountedBelowACover(t *testing.T) {
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asNode+"="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]bool{"target": true, "kept": true, "hidden": false} {
		if got := strings.Contains(string(out), " "+filepath.Join(folder, name)+" "); got != want {
			t.Errorf("%s is mounted: %t\n%s", name, got, out)
		}
	}
}
