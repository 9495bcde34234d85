// SPDX-License-Identifier: Apache-2.0

package components

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Source is the source folder of a module, in the version that the go.mod in folder selects. It downloads the module if
// the module cache does not have it: programs may come out of a cache of their own.
func Source(ctx context.Context, folder, module string) (string, error) {
	list := []string{"list", "-m", "-f", "{{.Dir}}", module}
	dir, err := goCommand(ctx, folder, list...)
	if err == nil && dir == "" {
		if _, err = goCommand(ctx, folder, "mod", "download", module); err == nil {
			dir, err = goCommand(ctx, folder, list...)
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the source of %s: %w", module, err)
	}
	return dir, nil
}

func goCommand(ctx context.Context, folder string, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = folder, &stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
