// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mlbatch/mlbatch/tools/debian"
)

// hostToolsVersion changes when the recipe below does.
const hostToolsVersion = "1"

// hostTools returns a folder with runc and nft from Debian: runc needs a C
// compiler and libseccomp to build, and nft is not a Go program. The host's
// own copies, if any, are left alone.
func (c *Cluster) hostTools(ctx context.Context) (string, error) {
	dir := filepath.Join(c.config.CacheDir, "host-tools-"+hostToolsVersion)
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	scratch, err := os.MkdirTemp(c.config.CacheDir, ".host-tools-")
	if err != nil {
		return "", fmt.Errorf("cannot fetch runc and nft: %w", err)
	}
	defer os.RemoveAll(scratch)
	root := filepath.Join(scratch, "root")
	err = debian.Unpack(ctx, debian.Request{
		Packages: []string{"nftables", "runc"}, Without: []string{"libc6"},
		Root: root, Scratch: filepath.Join(scratch, "apt"), Progress: c.progress,
	})
	if err != nil {
		return "", fmt.Errorf("cannot fetch runc and nft: %w", err)
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(root, "complete"), nil, 0o644),
		os.RemoveAll(dir),
		os.Rename(root, dir),
	)
	if err != nil {
		return "", fmt.Errorf("cannot keep runc and nft: %w", err)
	}
	return dir, nil
}

// debianTriplet names the library folder of Debian's packages.
func debianTriplet() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64-linux-gnu"
	}
	return "x86_64-linux-gnu"
}
