// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tree has the packages of the main module, by folder.
type tree struct {
	repo     repo
	packages map[string]pkg
	known    map[string][]string // what a source file names
}

// pkg is a package: the folders that it imports, and its files.
type pkg struct {
	program              bool
	imports, testImports []string
	files, testFiles     []string
}

// listed is what 'go list' prints of a package.
type listed struct {
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
	GoFiles, IgnoredGoFiles            []string
	TestGoFiles, XTestGoFiles          []string
	Module                             struct{ Path string }
}

// tree asks 'go list' once for all packages.
func (r repo) tree() (*tree, error) {
	cmd := exec.Command("go", "list", "-e", "-tags=cluster", "-json=ImportPath,Name,Imports,TestImports,XTestImports,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Module", "./...")
	cmd.Dir = string(r)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the packages: %w", err)
	}
	t := &tree{repo: r, packages: map[string]pkg{}, known: map[string][]string{}}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the list of packages: %w", err)
		}
		ours := l.Module.Path + "/"
		t.packages[strings.TrimPrefix(l.ImportPath, ours)] = pkg{
			program: l.Name == "main",
			imports: within(ours, l.Imports), testImports: within(ours, l.TestImports, l.XTestImports),
			files: slices.Concat(l.GoFiles, l.IgnoredGoFiles), testFiles: slices.Concat(l.TestGoFiles, l.XTestGoFiles),
		}
	}
}

// within returns the folders of the imported packages of a module.
func within(module string, imports ...[]string) (dirs []string) {
	for _, one := range slices.Concat(imports...) {
		if dir, ours := strings.CutPrefix(one, module); ours {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// packageOf returns the folder of the package to which a file belongs: the nearest one above it.
func (t *tree) packageOf(file string) string {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if _, is := t.packages[dir]; is {
			return dir
		}
	}
	return ""
}

// named returns the files and folders of the repository that source files name in strings, as what they build, read
// or install.
func (t *tree) named(dir string, files []string) (all []string) {
	for _, file := range files {
		file = path.Join(dir, file)
		if _, known := t.known[file]; !known {
			for _, p := range pathsIn(filepath.Join(string(t.repo), file)) {
				if strings.HasPrefix(p, "../") {
					p = path.Join(dir, p)
				}
				if t.isPath(p) {
					t.known[file] = append(t.known[file], p)
				}
			}
		}
		all = append(all, t.known[file]...)
	}
	return all
}

// isPath reports whether a string is a path of the repository. A single word like "docs" may mean anything, unless
// it is a program.
func (t *tree) isPath(p string) bool {
	if !strings.Contains(p, "/") {
		return t.packages[p].program
	}
	_, err := os.Stat(filepath.Join(string(t.repo), p))
	return err == nil
}

// pathsIn returns the strings of a source file that may be paths of the repository. What does not parse names
// nothing, and does not compile either.
func pathsIn(file string) (paths []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		var found string
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			found, _ = literal(n)
		case *ast.CallExpr:
			found = joined(n)
		}
		if found != "" && !path.IsAbs(found) {
			paths = append(paths, path.Clean(found))
		}
		return true
	})
	return paths
}

func literal(e ast.Expr) (string, bool) {
	l, is := e.(*ast.BasicLit)
	if !is || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// joined returns the constant part of a call like filepath.Join(root, "docs", "why.md", name).
func joined(call *ast.CallExpr) string {
	if s, is := call.Fun.(*ast.SelectorExpr); !is || s.Sel.Name != "Join" {
		return ""
	}
	var parts []string
	for _, arg := range call.Args {
		part, constant := literal(arg)
		switch {
		case constant && part != "..":
			parts = append(parts, part)
		case !constant && len(parts) > 0:
			return strings.Join(parts, "/")
		}
	}
	return strings.Join(parts, "/")
}
