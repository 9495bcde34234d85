// SPDX-License-Identifier: Apache-2.0

// Package compiler runs go build, so that the result depends neither on the machine nor on the
// user's settings.
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
	// Dir is a folder in the module whose go.mod selects all versions.
	Dir string
	// Packages are the import paths of the main packages.
	Packages []string
	// Tags are build tags.
	Tags string
	// Ldflags are linker flags in addition to -s -w.
	Ldflags string
	// OS and Arch are the target; empty means this machine.
	OS, Arch string
}

// Flags are the flags of go build that affect the binaries. The linker drops DWARF, so the
// compiler does not generate it, which saves a fifth of the time. The Makefile has the same
// flags, so that nothing is compiled twice.
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
		return fmt.Errorf("cannot create a folder for the compiler: %w", err)
	}
	defer os.RemoveAll(scratch)
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", out}, p.Flags()...), p.Packages...)...)
	cmd.Dir = p.Dir
	cmd.Env = append(append(os.Environ(), p.env()...), "GOTMPDIR="+scratch)
	err = subprocess.Run(ctx, cmd)
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("cannot find the go command; install Go, or add its folder to PATH")
	}
	return err
}

// scratchBeside creates the folder for go build's temporary files, up to several gigabytes.
// Beside the output, they are on the disk that has the space, and whoever removes an
// interrupted build also removes them.
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

// env overrides the user's settings, from the environment and from go env -w. The processor
// levels are Go's defaults, because a binary may move to another machine. Without garbage
// collection below GOMEMLIMIT, the compiler takes a quarter less time.
func (p Program) env() []string {
	return []string{
		"GOGC=off", "GOMEMLIMIT=1GiB",
		"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-buildvcs=false",
		"GOOS=" + cmp.Or(p.OS, runtime.GOOS), "GOARCH=" + cmp.Or(p.Arch, runtime.GOARCH), "GOAMD64=v1", "GOARM64=v8.0",
	}
}
