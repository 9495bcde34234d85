// SPDX-License-Identifier: Apache-2.0

// Package compiler answers how Go programs are compiled here, so that neither the
// machine nor the settings of whoever does it decide what comes out.
package compiler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mlbatch/mlbatch/tools/artifacts/subprocess"
)

// A Program is what one go build makes.
type Program struct {
	// Dir is a folder of the module that names all versions.
	Dir string
	// Packages are the main packages, each named as in the module.
	Packages []string
	// Tags are build tags.
	Tags string
	// Ldflags are linker flags beside -s -w.
	Ldflags string
	// OS and Arch name the machine that it is for; empty means this one.
	OS, Arch string
}

// Flags are what decides about the binaries, beside the sources and the machine.
// What the linker leaves out, the compiler need not make: without DWARF it takes a
// fifth less time. The Makefile says the same, so that nothing is compiled twice.
func (p Program) Flags() []string {
	flags := []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", strings.TrimSpace("-s -w " + p.Ldflags)}
	if p.Tags != "" {
		flags = append(flags, "-tags", p.Tags)
	}
	return flags
}

// Compile writes the binaries to out: a file or, with a slash at the end, a folder.
func (p Program) Compile(ctx context.Context, out string) error {
	scratch, err := scratchBeside(out)
	if err != nil {
		return fmt.Errorf("cannot make a folder for the compiler: %w", err)
	}
	defer os.RemoveAll(scratch)
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", out}, p.Flags()...), p.Packages...)...)
	cmd.Dir = p.Dir
	cmd.Env = append(append(os.Environ(), p.env()...), "GOTMPDIR="+scratch)
	err = subprocess.Run(ctx, cmd)
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the go command was not found; install Go, or put the folder that has it into PATH")
	}
	return err
}

// scratchBeside makes the folder for go build's temporary files, up to some
// gigabytes. An interrupted go build leaves them; here whoever clears away what
// is half done finds them, and the disk is the one that has the space.
func scratchBeside(out string) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, ".compiling-")
}

// env outweighs what the user has set, in the environment or with go env -w. The
// processor levels are Go's defaults: a binary may move to another machine. The
// compiler collects no garbage while it takes less than GOMEMLIMIT: it is done in a
// quarter less time.
func (p Program) env() []string {
	return []string{
		"GOGC=off", "GOMEMLIMIT=1GiB",
		"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-buildvcs=false",
		"GOOS=" + cmp.Or(p.OS, runtime.GOOS), "GOARCH=" + cmp.Or(p.Arch, runtime.GOARCH), "GOAMD64=v1", "GOARM64=v8.0",
	}
}
