// SPDX-License-Identifier: Apache-2.0

// Package arch_test holds the arrows of docs/architecture.md: who may import
// whom, and what the house is made of.
package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mlbatch/mlbatch/"

// pkg is what the rules look at in a package.
type pkg struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p pkg) in(folder string) bool {
	return p.ImportPath == module+folder || strings.HasPrefix(p.ImportPath, module+folder+"/")
}

var (
	core = []string{"lifecycle", "kinds", "podtemplate"}
	// A shell talks to the API server.
	shells = []string{"appwrapper", "admission"}
)

func TestTheCoreImportsOnlyWordsAndItself(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range core {
			if !p.in("controller/internal/" + name) {
				continue
			}
			for _, imported := range p.Imports {
				if why := forbiddenInCore(imported); why != "" {
					t.Errorf("%s imports %s: %s", p.ImportPath, imported, why)
				}
			}
		}
	}
}

func forbiddenInCore(imported string) string {
	ours := strings.HasPrefix(imported, module)
	switch {
	case ours && !allowedInCore(strings.TrimPrefix(imported, module)):
		return "arrows point from the core to controller/api only"
	case slices.Contains([]string{"context", "os", "net", "log", "log/slog", "math/rand", "math/rand/v2"}, imported),
		strings.HasPrefix(imported, "net/"), strings.HasPrefix(imported, "os/"):
		return "the core observes nothing and does nothing"
	case strings.HasPrefix(imported, "k8s.io/client-go"), strings.HasPrefix(imported, "sigs.k8s.io/controller-runtime"),
		strings.HasPrefix(imported, "k8s.io/klog"), strings.HasPrefix(imported, "github.com/go-logr"):
		return "the core has no client and no log"
	}
	return ""
}

func allowedInCore(path string) bool {
	if strings.HasPrefix(path, "controller/api/") {
		return true
	}
	for _, name := range core {
		if path == "controller/internal/"+name {
			return true
		}
	}
	return false
}

func TestShellsDoNotImportShells(t *testing.T) {
	for _, p := range packages(t) {
		for _, shell := range shells {
			if !p.in("controller/internal/" + shell) {
				continue
			}
			for _, other := range shells {
				if other != shell && slices.Contains(p.Imports, module+"controller/internal/"+other) {
					t.Errorf("%s imports the shell %s", p.ImportPath, other)
				}
			}
		}
	}
}

func TestTheAPIImportsNothingOfOurs(t *testing.T) {
	for _, p := range packages(t) {
		if !p.in("controller/api") {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, module) {
				t.Errorf("%s imports %s: others depend on the API, it depends on nobody", p.ImportPath, imported)
			}
		}
	}
}

func TestProductCodeDoesNotImportTests(t *testing.T) {
	for _, p := range packages(t) {
		if p.in("test") || p.in("tools/localcluster") || p.in("tools/demo") {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, module+"test/") {
				t.Errorf("%s imports %s outside a test", p.ImportPath, imported)
			}
		}
	}
}

func TestFolderNamesSayWhatIsInside(t *testing.T) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "manager", "handler", "handlers", "base", "misc"}
	for _, p := range packages(t) {
		if name := filepath.Base(p.Dir); slices.Contains(empty, name) {
			t.Errorf("%s: the name %q does not say which question the package answers", p.ImportPath, name)
		}
	}
}

func TestTheTopLevelIsTheArchitecture(t *testing.T) {
	rooms := []string{
		"charts", "controller", "setup", "tools", "samples", "test", "docs", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
		"bin", "dist", // built, not committed
	}
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(rooms, e.Name()) {
			t.Errorf("%s is no room of the house; see docs/architecture.md", e.Name())
		}
	}
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
