// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// root is the same path in every run, so that the next run can clean up after a killed one.
var root = filepath.Join(os.TempDir(), "mlbatch-test-simulated")

var checkout string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/simulated:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	if checkout, err = localcluster.FindCheckout("."); err != nil {
		return 0, err
	}
	if os.Geteuid() != 0 {
		return 0, errors.New("these tests become another user, which needs root; run them with sudo")
	}
	if err := buildComponents(); err != nil {
		return 0, err
	}
	for _, p := range people {
		if err := p.begin(); err != nil {
			return 0, err
		}
	}
	build := exec.Command("go", "build", "-o", localclusterProgram(), "./tools/localcluster/cmd")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("cannot build the command: %w\n%s", err, out)
	}
	for _, p := range people {
		left, err := p.leaks(administrator)
		if err != nil {
			return 0, err
		}
		leftByOthers = append(leftByOthers, left...)
	}
	code := m.Run()
	if code == 0 {
		return code, os.RemoveAll(root)
	}
	return code, endFailed()
}

// buildComponents builds missing components in the user's cache, where the next run finds them.
func buildComponents() error {
	versions, err1 := setup.Load()
	cache, err2 := components.UserCache(checkout)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := cache.Get(context.Background(), os.Stderr, append(components.ControlPlane(versions), components.Platform(versions)...)...)
	return err
}

// endFailed keeps the clusters' logs, and the clusters themselves if requested.
func endFailed() error {
	if os.Getenv("MLBATCH_E2E_KEEP") != "" {
		return nil
	}
	var failed error
	for _, p := range people {
		logs := filepath.Join(root, "log-"+p.name)
		failed = errors.Join(failed, os.RemoveAll(logs))
		if _, err := os.Stat(filepath.Join(p.dir(), "log")); err == nil {
			fmt.Fprintf(os.Stderr, "test/simulated: the logs of the cluster of %s are in %s\n", p.name, logs)
			failed = errors.Join(failed, os.CopyFS(logs, os.DirFS(filepath.Join(p.dir(), "log"))))
		}
		if out, err := p.localcluster("down").CombinedOutput(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cannot end the cluster of %s: %w\n%s", p.name, err, out))
		}
	}
	return failed
}

func localclusterProgram() string { return filepath.Join(root, "localcluster") }

// person is a user with a cluster.
type person struct {
	name string
	uid  int
	port int
}

// The clusters of both may exist at the same time.
var people = []person{{"root", 0, 26551}, {"nobody", 65534, 26552}}

func (p person) home() string    { return filepath.Join(root, p.name) }
func (p person) cluster() string { return "sim-" + p.name }
func (p person) dir() string {
	return filepath.Join(p.home(), "state", "mlbatch", "clusters", p.cluster())
}

// begin cleans up after an earlier run, and gives the person a home with the components that
// root has built.
func (p person) begin() error {
	if _, err := os.Stat(localclusterProgram()); err == nil {
		if out, err := p.localcluster("down").CombinedOutput(); err != nil {
			return fmt.Errorf("cannot end an earlier run's cluster: %w\n%s", err, out)
		}
	}
	if err := os.RemoveAll(p.home()); err != nil {
		return err
	}
	cache, err := components.UserCache(checkout)
	if err != nil {
		return err
	}
	to := filepath.Join(p.home(), "cache", "mlbatch", "components")
	for _, dir := range []string{filepath.Join(p.home(), "state"), to} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := linkAll(cache.Dir, to); err != nil {
		return err
	}
	return filepath.WalkDir(p.home(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chown(path, p.uid, p.uid)
	})
}

// linkAll creates hard links to finished builds, or copies them from another disk.
func linkAll(from, to string) error {
	entries, err := filepath.Glob(filepath.Join(from, "*", "*"))
	if err != nil {
		return err
	}
	for _, file := range entries {
		if strings.HasSuffix(filepath.Dir(file), ".building") {
			continue // an unfinished build
		}
		name, _ := filepath.Rel(from, file)
		if strings.Contains(name, ".building") {
			continue // another process is building it
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.Link(file, target); err == nil {
			continue
		}
		if out, err := exec.Command("cp", "-p", file, target).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot copy a finished build: %w\n%s", err, out)
		}
	}
	return nil
}

// localcluster returns the command as the person runs it. The person may also access root's Go
// caches and this checkout, because compiling the platform from scratch would take minutes. The
// capability for that does not allow creating namespaces, and does not exist inside a user
// namespace.
func (p person) localcluster(args ...string) *exec.Cmd {
	cmd := exec.Command(localclusterProgram(), append(args, "--name="+p.cluster(), "--checkout="+checkout)...)
	cmd.Dir = p.home()
	cmd.Env = append(os.Environ(), "HOME="+p.home(),
		"XDG_STATE_HOME="+filepath.Join(p.home(), "state"), "XDG_CACHE_HOME="+filepath.Join(p.home(), "cache"),
		"GOCACHE="+goEnv("GOCACHE"), "GOMODCACHE="+goEnv("GOMODCACHE"))
	if p.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid)},
			AmbientCaps: []uintptr{unix.CAP_DAC_OVERRIDE},
		}
	}
	return cmd
}

// administrator sees what everybody has left.
var administrator = person{name: "root"}

// leftByOthers is what existed on this machine before the tests, as after a demo that was killed.
var leftByOthers []string

// leaks returns what somebody finds in the folders of a person.
func (p person) leaks(who person) ([]string, error) {
	cmd := who.localcluster("leaks")
	cmd.Env = p.localcluster().Env
	out, err := cmd.Output()
	if err != nil && len(out) == 0 { // it fails also if there are some, and lists them
		return nil, fmt.Errorf("cannot list leaks: %w", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

func goEnv(name string) string {
	out, _ := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(out))
}

// says runs a command as the person and returns its output.
func (p person) says(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd := p.localcluster(args...)
	var printed, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &progress
	err = cmd.Run()
	t.Logf("%s: localcluster %s\n%s%s", p.name, strings.Join(args, " "), progress.String(), printed.String())
	return progress.String() + printed.String(), err
}

var nodes = flag.Int("nodes", localcluster.DefaultSimulatedNodes, "how many simulated nodes there are, of 110 pods each")

func (p person) up(t *testing.T) (out string, err error) {
	t.Helper()
	return p.says(t, "up", "--mode=simulated", "--platform", "--port="+strconv.Itoa(p.port), "--simulated-nodes="+strconv.Itoa(*nodes))
}

func kill(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err == nil {
		err = unix.Kill(number, unix.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}
