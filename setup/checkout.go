// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoCheckout means that a folder is not inside a checkout of this repository.
var ErrNoCheckout = errors.New("not inside a checkout of MLBatch")

// Checkout returns the root of this repository: the first folder with setup/versions.yaml
// in dir or above it. If there is none, the error is ErrNoCheckout.
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
