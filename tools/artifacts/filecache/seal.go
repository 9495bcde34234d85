// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// manifestName is the file that marks an entry as complete: it is written last.
const manifestName = "manifest.json"

// manifest has the SHA-256 of each regular file by its path in the entry.
type manifest map[string]string

// Has reports whether a complete entry exists at path. It does not verify the files, which
// takes seconds, so Get may still build it again.
func Has(path string) bool {
	_, err := os.Stat(filepath.Join(path, manifestName))
	return err == nil
}

// intact reports whether an entry is complete and unchanged: a full disk or a killed copy
// leaves broken entries behind.
func intact(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return false
	}
	var m manifest
	if json.Unmarshal(data, &m) != nil || len(m) == 0 {
		return false
	}
	for name, want := range m {
		if got, err := digest(filepath.Join(dir, name)); err != nil || got != want {
			return false
		}
	}
	return true
}

// seal writes the manifest of a filled folder.
func seal(dir string) error {
	m := manifest{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		m[name], err = digest(path)
		return err
	})
	if err != nil {
		return err
	}
	if len(m) == 0 {
		return errors.New("it has no files")
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestName), data, 0o644)
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
