// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Cache is a folder of finished builds, one entry a component and key.
type Cache struct {
	// Dir holds the entries; all checkouts of a user share it.
	Dir string
	// Checkout is the root of the repository that holds tools/components.
	Checkout string
}

// manifestName is the file that makes an entry complete: it is written last.
const manifestName = "manifest.json"

// manifest holds the sha256 of each binary of an entry.
type manifest map[string]string

// key is a hash of all that decides a build: the module's files, the flags,
// the toolchain and the platform.
func (c Cache) key(comp Component) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, goFlags(comp), comp.Packages)
	folder := c.module(comp)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("cannot read the module of %s: %w", comp.Name, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return "", fmt.Errorf("cannot read the module of %s: %w", comp.Name, err)
		}
		fmt.Fprintln(h, e.Name(), len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func (c Cache) entry(comp Component, key string) string {
	return filepath.Join(c.Dir, comp.Name+"-"+key)
}

func (c Cache) module(comp Component) string {
	return filepath.Join(c.Checkout, "tools", "components", comp.Folder)
}

// intact reports whether an entry is complete and its binaries are the bytes
// that were built: a full disk or a killed copy leaves broken ones behind.
func intact(entry string) bool {
	data, err := os.ReadFile(filepath.Join(entry, manifestName))
	if err != nil {
		return false
	}
	var m manifest
	if json.Unmarshal(data, &m) != nil || len(m) == 0 {
		return false
	}
	for name, want := range m {
		if got, err := digest(filepath.Join(entry, name)); err != nil || got != want {
			return false
		}
	}
	return true
}

// seal writes the manifest of a finished build.
func seal(entry string, binaries []string) error {
	m := manifest{}
	for _, name := range binaries {
		sum, err := digest(filepath.Join(entry, name))
		if err != nil {
			return err
		}
		m[name] = sum
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(entry, manifestName), data, 0o644)
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
