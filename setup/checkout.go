// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoCheckout says that a folder is not inside a checkout of this repository.
var ErrNoCheckout = errors.New("not inside a checkout of MLBatch")

// Checkout returns the root of this repository, looked for from dir upwards. It is the
// folder that has setup/versions.yaml. The error is ErrNoCheckout where there is none.
func Checkout(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the MLBatch checkout: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "setup", "versions.yaml")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is %w", dir, ErrNoCheckout)
		}
	}
}
