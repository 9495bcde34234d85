// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// answers has a package for each question. They judge what others have read; what they share is in quota.
const answers, shared = "tools/mlbatch/answers/", "tools/mlbatch/quota"

// An answer that lists objects itself, or takes them from another answer, would be one more model of the cluster.
func TestAnswersHaveNoClientAndNotEachOther(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.name, answers) && p.name != shared {
			continue
		}
		found++
		for _, imported := range p.imports {
			if strings.Contains(imported, "k8s.io/client-go") || strings.HasPrefix(imported, "sigs.k8s.io/controller-runtime") || imported == "context" {
				t.Errorf("%s imports %s: read it in tools/mlbatch/clusterstate", p.name, imported)
			}
			if strings.HasPrefix(imported, module+answers) {
				t.Errorf("%s imports %s: what both need belongs to %s", p.name, imported, shared)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d packages are in %s", found, answers)
	}
}

// Only clusterstate lists: whoever lists by himself forgets pages, or what a member may not read. The installer has a
// client of its own, for clusters without the platform.
func TestOnlyClusterstateLists(t *testing.T) {
	found := 0
	err := filepath.WalkDir(filepath.Join(root, "tools", "mlbatch"), func(file string, entry fs.DirEntry, err error) error {
		inside, _ := filepath.Rel(root, file)
		inside = filepath.ToSlash(inside)
		if err != nil || entry.IsDir() || !strings.HasSuffix(inside, ".go") || strings.HasSuffix(inside, "_test.go") || strings.HasPrefix(inside, "tools/mlbatch/install/") {
			return err
		}
		for _, at := range lists(t, file) {
			if path.Dir(inside) == "tools/mlbatch/clusterstate" {
				found++
				continue
			}
			t.Errorf("%s:%d lists objects: call tools/mlbatch/clusterstate", inside, at)
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("clusterstate lists %d times, %v", found, err)
	}
}

// lists are the lines that call a method List.
func lists(t *testing.T, file string) (lines []int) {
	t.Helper()
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		if method, is := call.Fun.(*ast.SelectorExpr); is && method.Sel.Name == "List" && !isPackage(parsed, method.X) {
			lines = append(lines, positions.Position(call.Pos()).Line)
		}
		return true
	})
	return lines
}

func isPackage(file *ast.File, x ast.Expr) bool {
	name, is := x.(*ast.Ident)
	return is && slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		imported, err := strconv.Unquote(i.Path.Value)
		return err == nil && (i.Name == nil && path.Base(imported) == name.Name || i.Name != nil && i.Name.Name == name.Name)
	})
}
