// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/subprocess"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// site is this machine, with everything that the virtual machines need.
type site struct {
	// cache keeps Debian releases. scratch is removed at the end, consoles is not.
	cache, scratch, consoles string
	shares                   []share
}

// runOn boots a Debian release and runs the steps on it.
func (s site) runOn(ctx context.Context, release string, timeout time.Duration, out io.Writer) error {
	began := time.Now()
	d, err := s.makeDisk(ctx, release)
	if err != nil {
		return err
	}
	defer os.Remove(d.image)
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return fmt.Errorf("cannot look at this machine's processor: %w", err)
	}
	m := machine{
		disk: d, shares: s.shares, console: filepath.Join(s.consoles, release+".log"),
		accelerated: accelerated(string(cpuinfo), canOpen),
	}
	fmt.Fprintf(out, "\nDebian %s, %s; disk made in %.0f s\n", release, m.processor(), time.Since(began).Seconds())
	fmt.Fprintln(out, "   here  on its clock")
	return m.run(ctx, timeout, out)
}

// prepare installs missing Debian packages, and builds what the cluster needs: the virtual
// machine has no network.
func prepare(ctx context.Context, consoles string) (site, error) {
	if runtime.GOARCH != "amd64" || os.Geteuid() != 0 {
		return site{}, errors.New("the virtual machine is amd64 and its disk is made as root: run this as root on amd64")
	}
	if err := install(ctx); err != nil {
		return site{}, err
	}
	checkout, err1 := localcluster.FindCheckout(".")
	consoles, err2 := filepath.Abs(consoles)
	user, err3 := os.UserCacheDir()
	scratch, err4 := os.MkdirTemp("", "mlbatch-vm-")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return site{}, fmt.Errorf("cannot find the folders of the virtual machine: %w", err)
	}
	s := site{cache: filepath.Join(user, "mlbatch", "vm"), scratch: scratch, consoles: consoles}
	var err error
	if s.shares, err = s.offer(ctx, checkout); err == nil {
		err = errors.Join(os.MkdirAll(consoles, 0o755), s.build(ctx, checkout))
	}
	if err != nil {
		return site{}, errors.Join(err, os.RemoveAll(scratch))
	}
	return s, nil
}

// build fills the caches as 'localcluster up' does, and builds the commands for the machine:
// localcluster and this one.
func (s site) build(ctx context.Context, checkout string) error {
	for _, mode := range []localcluster.Mode{localcluster.Real, localcluster.Simulated} {
		cluster, err := localcluster.New(localcluster.Config{Mode: mode, Checkout: checkout, StateDir: filepath.Join(s.scratch, "state")}, os.Stderr)
		if err != nil {
			return err
		}
		if err := cluster.Build(ctx); err != nil {
			return err
		}
	}
	for name, folder := range map[string]string{"vm": "test/vm", "localcluster": "tools/localcluster/cmd"} {
		program := compiler.Program{Dir: checkout, Packages: []string{"./" + folder}}
		if err := program.Compile(ctx, filepath.Join(s.carried(), name)); err != nil {
			return fmt.Errorf("cannot build %s: %w", folder, err)
		}
	}
	return nil
}

func (s site) carried() string { return filepath.Join(s.scratch, "carried") }

// offer returns the folders that the virtual machine can access.
func (s site) offer(ctx context.Context, checkout string) ([]share, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot ask go for its folders: %w", err)
	}
	of := strings.Fields(string(out))
	return []share{
		{tag: "checkout", here: checkout, inside: insideCheckout},
		{tag: "cache", here: filepath.Dir(s.cache), inside: insideCache},
		{tag: "go", here: of[0], inside: insideGo},
		{tag: "modules", here: of[1], inside: insideModules},
		{tag: "compiled", here: of[2], inside: insideCompiled},
		{tag: "carried", here: s.carried(), inside: insideCarried, writable: true},
	}, nil
}

// programs are the Debian programs that this command runs, with their packages.
var programs = []struct{ name, pkg string }{
	{"mmdebstrap", "mmdebstrap"}, {"mke2fs", "e2fsprogs"}, {"tar", "tar"}, {qemuProgram, "qemu-system-x86"},
}

// install installs the packages of missing programs.
func install(ctx context.Context) error {
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program.name); err != nil {
			missing = append(missing, program.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	install := append([]string{"install", "--yes", "--no-install-recommends"}, missing...)
	for _, args := range [][]string{{"update"}, install} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-qq"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
		if err := subprocess.Run(ctx, cmd); err != nil {
			return fmt.Errorf("cannot install %s: %w", strings.Join(missing, ", "), err)
		}
	}
	return nil
}
