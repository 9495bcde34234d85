// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Tables that everybody may read are fine; what is written while the program runs belongs
// to an object, so that two controllers in one process, as in tests, share nothing, and
// every lock is beside what it guards.
func TestNoPackageHasAMemory(t *testing.T) {
	for _, p := range packages(t) {
		if p.name != "controller" && !strings.HasPrefix(p.name, "controller/") {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", p.name, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var parsed []*ast.File
		set := token.NewFileSet()
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		variables := packageVariables(parsed)
		for _, f := range parsed {
			for _, where := range writes(f, variables) {
				t.Errorf("%s is written: keep it in an object", set.Position(where))
			}
		}
	}
}

func packageVariables(files []*ast.File) map[string]bool {
	found := map[string]bool{}
	for _, f := range files {
		for _, declared := range f.Decls {
			list, ok := declared.(*ast.GenDecl)
			if !ok || list.Tok != token.VAR {
				continue
			}
			for _, spec := range list.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					found[name.Name] = true
				}
			}
		}
	}
	return found
}

// writes are the places in functions where one of the variables is assigned to, in whole
// or in part, where something is deleted from it, or where it is locked. A local variable
// of the same name would be taken for it: give it another.
func writes(f *ast.File, variables map[string]bool) []token.Pos {
	var found []token.Pos
	written := func(target ast.Expr) {
		if name, ok := whole(target).(*ast.Ident); ok && variables[name.Name] {
			found = append(found, target.Pos())
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				if n.Tok != token.DEFINE {
					written(target)
				}
			}
		case *ast.IncDecStmt:
			written(n.X)
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && (name.Name == "delete" || name.Name == "clear") {
				written(n.Args[0])
			}
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && (method.Sel.Name == "Lock" || method.Sel.Name == "Store") {
				written(method.X)
			}
		}
		return true
	})
	return found
}

// whole is the variable of which an expression is a part.
func whole(e ast.Expr) ast.Expr {
	for {
		switch part := e.(type) {
		case *ast.IndexExpr:
			e = part.X
		case *ast.SelectorExpr:
			e = part.X
		case *ast.StarExpr:
			e = part.X
		case *ast.ParenExpr:
			e = part.X
		default:
			return e
		}
	}
}
