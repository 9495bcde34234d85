// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"path/filepath"
)

// Own builds a program of this repository, given by its folder in the
// checkout, into dir and returns its path. Go's own cache makes it quick when
// nothing has changed, so that it is never out of date.
func (c Cache) Own(ctx context.Context, folder, dir string) (string, error) {
	path := filepath.Join(dir, filepath.Base(folder))
	if err := run(ctx, c.Checkout, []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./" + folder}); err != nil {
		return "", fmt.Errorf("cannot build %s: %w", folder, err)
	}
	return path, nil
}
