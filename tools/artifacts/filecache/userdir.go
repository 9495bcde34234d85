// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"fmt"
	"os"
	"path/filepath"
)

// UserDir is the cache folder that all checkouts of a user share.
func UserDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(dir, "mlbatch"), nil
}
