// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stampControllers writes values that annotate the pods of each controller of ours with the
// digest of its program. All builds of a checkout have the same image tag: without the
// annotation, an upgrade would keep the old pods.
func stampControllers(dir string) (values string, err error) {
	var text strings.Builder
	for _, p := range own() {
		for _, i := range p.Images {
			if i.Title != "" {
				continue // it does not run in the pods of the controller
			}
			program, err := os.ReadFile(filepath.Join(dir, i.Program()))
			if err != nil {
				return "", fmt.Errorf("cannot read the loaded controller: %w", err)
			}
			fmt.Fprintf(&text, "%s: {podAnnotations: {mlbatch.dev/program: %q}}\n", p.Name, fmt.Sprintf("%x", sha256.Sum256(program)))
		}
	}
	values = filepath.Join(dir, "controller.yaml")
	if err := os.WriteFile(values, []byte(text.String()), 0o644); err != nil {
		return "", fmt.Errorf("cannot write the values of these controllers: %w", err)
	}
	return values, nil
}
