// SPDX-License-Identifier: Apache-2.0

// Package debian unpacks Debian packages into a folder. It installs nothing: it neither reads
// nor writes the host's package database, and runs no maintainer scripts. It uses the
// host's apt-get, dpkg-deb and package sources.
package debian

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mlbatch/mlbatch/tools/artifacts/subprocess"
)

// Request says what to unpack and where.
type Request struct {
	// Packages are unpacked with all their dependencies.
	Packages []string
	// Without names dependencies to leave out.
	Without []string
	// Root is the folder to unpack into; it is created if missing.
	Root string
	// Scratch holds package lists and archives; the caller removes it.
	Scratch string
	// Progress receives a line for each step that takes time.
	Progress io.Writer
}

// Unpack downloads and unpacks packages. It needs the network.
func Unpack(ctx context.Context, r Request) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("cannot fetch Debian packages: cannot find %s; run this on Debian", tool)
		}
	}
	archives, err := r.download(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Root, 0o755); err != nil {
		return fmt.Errorf("cannot unpack Debian packages: %w", err)
	}
	for i, archive := range archives {
		if i%50 == 49 {
			fmt.Fprintf(r.Progress, "Debian packages: unpacked %d of %d\n", i+1, len(archives))
		}
		if err := run(ctx, "dpkg-deb", "--extract", archive, r.Root); err != nil {
			return fmt.Errorf("cannot unpack %s: %w", filepath.Base(archive), err)
		}
	}
	return nil
}

// download fetches the packages as if nothing were installed and returns the
// archives in name order.
func (r Request) download(ctx context.Context) ([]string, error) {
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(r.Scratch, dir), 0o755); err != nil {
			return nil, fmt.Errorf("cannot fetch Debian packages: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.Scratch, "status"), nil, 0o644); err != nil {
		return nil, fmt.Errorf("cannot fetch Debian packages: %w", err)
	}
	fmt.Fprintf(r.Progress, "Debian packages: downloading %s and their dependencies\n", strings.Join(r.Packages, ", "))
	if err := r.fetch(ctx); err != nil {
		return nil, err
	}
	all, err := filepath.Glob(filepath.Join(r.Scratch, "cache", "archives", "*.deb"))
	if err != nil {
		return nil, err
	}
	kept := all[:0]
	for _, archive := range all {
		if !r.without(archive) {
			kept = append(kept, archive)
		}
	}
	return kept, nil
}

// fetch tolerates unreadable package lists if it finds the packages in others: a machine may
// have a broken source that is not needed here.
func (r Request) fetch(ctx context.Context) error {
	unread := r.apt(ctx, "update", "-o", "APT::Update::Error-Mode=any")
	install := append([]string{"install", "--yes", "--no-install-recommends", "--download-only"}, r.Packages...)
	err := r.apt(ctx, install...)
	switch {
	case err == nil:
		return nil
	case unread != nil && ctx.Err() == nil:
		return fmt.Errorf("cannot read Debian's package lists: %w", unread)
	}
	return fmt.Errorf("cannot download Debian packages: %w", err)
}

func (r Request) without(archive string) bool {
	for _, name := range r.Without {
		if strings.HasPrefix(filepath.Base(archive), name+"_") {
			return true
		}
	}
	return false
}

// apt runs apt-get with the scratch folder. It runs as root, because the sandbox user could
// not write there.
func (r Request) apt(ctx context.Context, args ...string) error {
	options := []string{
		"-qq",
		"-o", "Dir::State=" + filepath.Join(r.Scratch, "state"),
		"-o", "Dir::State::status=" + filepath.Join(r.Scratch, "status"),
		"-o", "Dir::Cache=" + filepath.Join(r.Scratch, "cache"),
		"-o", "APT::Sandbox::User=root",
		"-o", "Acquire::Retries=3",
	}
	return run(ctx, "apt-get", append(options, args...)...)
}

// run sets the locale, because errors are recognized by their English text.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if err := subprocess.Run(ctx, cmd); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
