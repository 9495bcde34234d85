// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed files
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "files/*"))

// render writes one of the embedded files with its placeholders filled in.
func (c *Cluster) render(path, name string, values any) error {
	text, err := rendered(name, values)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	// Aside, as a kubectl may be reading the file that is there.
	aside := path + ".new"
	err = os.WriteFile(aside, text, 0o600)
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
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
