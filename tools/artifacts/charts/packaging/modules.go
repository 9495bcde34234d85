// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// moduleDir returns the folder of a module in the version that go.mod selects. The go command
// downloads it if necessary, and verifies it with go.sum.
func (b builder) moduleDir(path string) (string, error) {
	cmd := exec.CommandContext(b.ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = b.root
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	runErr := cmd.Run()
	var module struct{ Dir, Error string }
	if err := json.Unmarshal(out.Bytes(), &module); err != nil || module.Dir == "" {
		return "", fmt.Errorf("cannot find module %s: %s%s (%w)", path, module.Error, problem.Bytes(), runErr)
	}
	return module.Dir, nil
}

// readText reads a file of a module.
func readText(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read a file of a module: %w", err)
	}
	return text, nil
}
