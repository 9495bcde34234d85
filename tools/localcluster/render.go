// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/mlbatch/mlbatch/tools/artifacts/atomicfile"
)

//go:embed files
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "files/*"))

// render writes one of the embedded templates with its values filled in.
func (c *Cluster) render(path, name string, values any) error {
	text, err := rendered(name, values)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := atomicfile.Write(path, 0o600, text); err != nil { // kubectl may be reading the old file
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

func rendered(name string, values any) ([]byte, error) {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name, values); err != nil {
		return nil, fmt.Errorf("cannot render %s: %w", name, err)
	}
	return text.Bytes(), nil
}
