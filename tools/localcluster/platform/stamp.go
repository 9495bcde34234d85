// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// stampController writes values that annotate the controller's pods with the digest of its
// program. All builds of a checkout have the same image tag: without the annotation, an
// upgrade would keep the old pod.
func stampController(dir string) (values string, err error) {
	program, err := os.ReadFile(filepath.Join(dir, controllerProgram))
	if err != nil {
		return "", fmt.Errorf("cannot read the loaded controller: %w", err)
	}
	values = filepath.Join(dir, "controller.yaml")
	text := fmt.Sprintf("appwrapper: {podAnnotations: {mlbatch.dev/program: %q}}\n", fmt.Sprintf("%x", sha256.Sum256(program)))
	if err := os.WriteFile(values, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("cannot write the values of this controller: %w", err)
	}
	return values, nil
}
