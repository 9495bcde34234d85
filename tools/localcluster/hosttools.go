// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mlbatch/mlbatch/tools/artifacts/debian"
	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
)

// hostToolsVersion must change whenever fetchHostTools does: it names the cache entry.
const hostToolsVersion = "1"

// hostTools returns a folder with runc and nft from Debian: building runc needs a C
// compiler and libseccomp, and nft is not a Go program. The host's own copies stay as
// they are.
func (c *Cluster) hostTools(ctx context.Context) (string, error) {
	entry := filecache.Entry{
		Path:  filepath.Join(c.config.CacheDir, "host-tools-"+hostToolsVersion),
		Title: "runc and nft",
		Fill:  func(dir string) error { return c.fetchHostTools(ctx, dir) },
	}
	return entry.Path, entry.Get(ctx, c.progress)
}

func (c *Cluster) fetchHostTools(ctx context.Context, dir string) error {
	scratch := filepath.Join(dir, "apt")
	err := debian.Unpack(ctx, debian.Request{
		Packages: []string{"nftables", "runc"}, Without: []string{"libc6"},
		Root: dir, Scratch: scratch, Progress: c.progress,
	})
	if err != nil {
		return fmt.Errorf("cannot fetch runc and nft: %w", err)
	}
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("cannot remove the scratch folder of runc and nft: %w", err)
	}
	return nil
}

// debianTriplet names the library folder of Debian's packages.
func debianTriplet() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64-linux-gnu"
	}
	return "x86_64-linux-gnu"
}
