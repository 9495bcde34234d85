// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// insideCommand makes this program run the steps, on the virtual machine.
const insideCommand = "inside"

// A step does something and describes what it found.
type step struct {
	name string
	do   func(context.Context) (found string, err error)
}

// steps are what a user of a stock Debian would do, and what must be true afterwards.
func steps() []step {
	return []step{
		{"Debian as it is installed", system},
		{"localcluster up", up()},
		{"a pod's limits are in its cgroup", limits},
		{"a pod above its memory limit is killed", outOfMemory},
		{"localcluster status", status},
		{"localcluster down", down},
		{"nothing is left", nothingLeft},
		{"localcluster up --mode=simulated", up("--mode=simulated")},
		{"localcluster down of that", down},
		{"nothing is left of that", nothingLeft},
	}
}

// inside runs the steps and reports each. The first failure ends it and saves the cluster's
// logs to a shared folder.
func inside(ctx context.Context, out io.Writer) error {
	reports := json.NewEncoder(out)
	all := steps()
	for i, s := range all {
		began := time.Now()
		found, err := s.do(ctx)
		r := report{Step: s.name, Found: found, Seconds: time.Since(began).Seconds(), Last: i == len(all)-1}
		if err != nil {
			r.Problem = errors.Join(err, saveLogs()).Error()
		}
		if err := errors.Join(err, reports.Encode(r)); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

const (
	hierarchy = "/sys/fs/cgroup"
	clusters  = "/root/.local/state/mlbatch/clusters"
)

// saveLogs copies the logs of clusters to a shared folder, where they can be read afterwards.
func saveLogs() error {
	logs, _ := filepath.Glob(filepath.Join(clusters, "*", "log")) // the only error is a bad pattern
	for _, dir := range logs {
		if err := os.CopyFS(filepath.Join(insideCarried, logsDir, filepath.Base(filepath.Dir(dir))), os.DirFS(dir)); err != nil {
			return fmt.Errorf("cannot save the cluster's logs: %w", err)
		}
	}
	return nil
}

const logsDir = "logs"

// system checks that the machine is what the steps require.
func system(context.Context) (string, error) {
	first, err := os.ReadFile("/proc/1/comm")
	if err != nil {
		return "", fmt.Errorf("cannot look at process 1: %w", err)
	}
	if string(first) != "systemd\n" {
		return "", fmt.Errorf("process 1 is %q, not systemd", first)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(hierarchy, &fs); err != nil {
		return "", fmt.Errorf("cannot look at %s: %w", hierarchy, err)
	}
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return "", fmt.Errorf("%s has the type %#x, not that of cgroup v2", hierarchy, fs.Type)
	}
	return versions()
}

// versions returns the versions of Debian and its kernel, and the controllers of cgroup v2.
func versions() (string, error) {
	var kernel unix.Utsname
	err := unix.Uname(&kernel)
	release, err1 := os.ReadFile("/etc/os-release")
	version, err2 := os.ReadFile("/etc/debian_version")
	controllers, err3 := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return "", fmt.Errorf("cannot ask for versions: %w", err)
	}
	_, name, _ := strings.Cut(string(release), `PRETTY_NAME="`)
	name, _, _ = strings.Cut(name, `"`)
	return fmt.Sprintf("%s, %s; kernel %s; systemd is process 1; cgroup v2 with %s",
		name, strings.TrimSpace(string(version)), unix.ByteSliceToString(kernel.Release[:]), strings.TrimSpace(string(controllers))), nil
}

// cluster runs a command of the local cluster and returns its output.
func cluster(ctx context.Context, args ...string) (string, error) {
	var output, said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(insideCarried, "localcluster"), args...)
	cmd.Stdout, cmd.Stderr = &output, io.MultiWriter(&said, os.Stderr) // the latter is the console
	if err := cmd.Run(); err != nil {
		return output.String(), fmt.Errorf("localcluster %s: %w\n%s%s", strings.Join(args, " "), err, output.String(), said.String())
	}
	return output.String(), nil
}

func up(flags ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if _, err := cluster(ctx, append([]string{"up", "--simulated-nodes=2"}, flags...)...); err != nil {
			return "", err
		}
		return status(ctx)
	}
}

// status fails unless the cluster is healthy.
func status(ctx context.Context) (string, error) {
	said, err := cluster(ctx, "status")
	if err != nil {
		return "", err
	}
	var found []string
	for _, line := range strings.Split(said, "\n") {
		if strings.Contains(line, "nodes ") || strings.HasPrefix(line, "in use") {
			found = append(found, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(found, "; "), nil
}

func down(ctx context.Context) (string, error) {
	if _, err := cluster(ctx, "down"); err != nil {
		return "", err
	}
	return "", nil
}

// nothingLeft checks with the command and in the kernel that nothing of a cluster is left.
func nothingLeft(ctx context.Context) (string, error) {
	if _, err := cluster(ctx, "leaks"); err != nil {
		return "", err
	}
	if left := tops(); len(left) > 0 {
		return "", fmt.Errorf("cgroups are left: %s", strings.Join(left, ", "))
	}
	left, err := os.ReadDir(clusters)
	if err != nil {
		return "", fmt.Errorf("cannot look for files that are left: %w", err)
	}
	if len(left) > 0 {
		return "", fmt.Errorf("files are left in %s: %v", clusters, left)
	}
	return "no process, namespace, mount, cgroup or file", nil
}

// tops returns the cgroups of clusters.
func tops() []string {
	found, _ := filepath.Glob(filepath.Join(hierarchy, "mlbatch-*")) // the only error is a bad pattern
	return found
}
