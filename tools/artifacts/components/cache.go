// SPDX-License-Identifier: Apache-2.0

package components

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
)

// Cache is a folder of finished builds, with one entry for each component and key.
type Cache struct {
	// Dir holds the entries; all checkouts of a user share it.
	Dir string
	// Checkout is the root of the repository that holds tools/artifacts/components.
	Checkout string
}

// CacheIn returns the cache of a checkout in a folder, usually the one that filecache.UserDir
// returns.
func CacheIn(dir, checkout string) Cache {
	return Cache{Dir: filepath.Join(dir, "components"), Checkout: checkout}
}

// UserCache returns the cache of a checkout in the user's cache folder. Local clusters and their
// tests share its builds.
func UserCache(checkout string) (Cache, error) {
	dir, err := filecache.UserDir()
	return CacheIn(dir, checkout), err
}

// entry is the folder of a component's binaries.
func (c Cache) entry(comp Component) (string, error) {
	key, err := c.key(comp)
	return filepath.Join(c.Dir, comp.Name+"-"+key), err
}

// key is a hash of the inputs of a build: the module's files, the flags, the platform, and
// the version of Go that compiled this program. The installed go command usually has the
// same version; asking it would make even a finished cache need Go.
func (c Cache) key(comp Component) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, c.program(comp).Flags(), comp.Packages)
	for _, folder := range c.folders(comp) {
		if err := hashFiles(h, folder); err != nil {
			return "", fmt.Errorf("cannot read the module of %s: %w", comp.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// folders are the module's folder and those of programs in it.
func (c Cache) folders(comp Component) []string {
	folders := []string{c.module(comp)}
	for _, p := range comp.Packages {
		if strings.HasPrefix(p, "./") {
			folders = append(folders, filepath.Join(c.module(comp), p))
		}
	}
	return folders
}

// hashFiles hashes the files of a folder, without subfolders.
func hashFiles(h io.Writer, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n%s", e.Name(), len(data), data)
	}
	return nil
}

// Module is the folder of a pinned module, such as kueue, in a checkout.
func Module(checkout, name string) string {
	return filepath.Join(checkout, "tools", "artifacts", "components", name)
}

func (c Cache) module(comp Component) string {
	return Module(c.Checkout, comp.Folder)
}
