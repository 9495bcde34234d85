// SPDX-License-Identifier: Apache-2.0

package components

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSourceOfAnUnknownModuleIsNamed(t *testing.T) {
	_, err := Source(t.Context(), "kueue", "example.org/other")
	if err == nil || !strings.HasPrefix(err.Error(), "cannot find the source of example.org/other: ") {
		t.Errorf("got %v", err)
	}
}

// After the module cache was cleared, go knows the module but has no folder for it.
func TestAModuleMissingFromTheCacheIsDownloaded(t *testing.T) {
	bin := t.TempDir()
	script := `#!/bin/sh
case "$1" in
list) cat ` + bin + `/dir 2>/dev/null || true ;;
mod) echo /cache/kwok > ` + bin + `/dir ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if dir, err := Source(t.Context(), t.TempDir(), "sigs.k8s.io/kwok"); err != nil || dir != "/cache/kwok" {
		t.Errorf("got %q, %v", dir, err)
	}
}
