// SPDX-License-Identifier: Apache-2.0

package components

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
)

// Own builds a program of this repository, given by its folder in the checkout, into dir and
// returns its path. It always builds, so it is never out of date; Go's cache makes that
// fast. It sets main.version, and reports progress if the build takes long.
func (c Cache) Own(ctx context.Context, progress io.Writer, folder, dir string) (string, error) {
	defer line{progress, folder}.remind(ctx)()
	versions, err := setup.Load()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(folder))
	program := compiler.Program{Dir: c.Checkout, Packages: []string{"./" + folder}, Ldflags: "-X main.version=" + versions.Version}
	if err := program.Compile(ctx, path); err != nil {
		return "", fmt.Errorf("cannot build %s: %w", folder, err)
	}
	return path, nil
}
