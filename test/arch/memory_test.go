// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"strings"
	"testing"
)

// Read-only tables may be package variables. Everything that changes at run time belongs to an
// object, so that two controllers in one process, as in tests, share nothing, and every lock is
// next to what it guards. A variable that contains a lock counts as changing.
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
		for _, where := range lockedVariables(parsed) {
			t.Errorf("%s: a package variable has a lock: move it to an object", set.Position(where))
		}
		variables := packageVariables(parsed)
		for _, f := range parsed {
			for _, where := range writes(f, variables) {
				t.Errorf("%s: a package variable is modified: move it to an object", set.Position(where))
			}
		}
	}
}

func packageVariables(files []*ast.File) map[string]bool {
	found := map[string]bool{}
	for spec := range declared[*ast.ValueSpec](files, token.VAR) {
		for _, name := range spec.Names {
			found[name.Name] = true
		}
	}
	return found
}

// declared yields the declarations outside functions.
func declared[Spec ast.Spec](files []*ast.File, what token.Token) iter.Seq[Spec] {
	return func(yield func(Spec) bool) {
		for _, f := range files {
			for _, d := range f.Decls {
				list, ok := d.(*ast.GenDecl)
				if !ok || list.Tok != what {
					continue
				}
				for _, spec := range list.Specs {
					if !yield(spec.(Spec)) {
						return
					}
				}
			}
		}
	}
}

// lockedVariables returns the package variables whose type or initial value uses sync,
// sync/atomic, or a type of this package that contains a lock.
func lockedVariables(files []*ast.File) []token.Pos {
	locked := map[string]bool{}
	for spec := range declared[*ast.TypeSpec](files, token.TYPE) {
		if mentions(spec.Type, nil) {
			locked[spec.Name.Name] = true
		}
	}
	var found []token.Pos
	for spec := range declared[*ast.ValueSpec](files, token.VAR) {
		if mentions(spec, locked) {
			found = append(found, spec.Pos())
		}
	}
	return found
}

// mentions reports whether code outside function bodies names a lock or one of the types.
func mentions(code ast.Node, types map[string]bool) (found bool) {
	ast.Inspect(code, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.SelectorExpr:
			name, ok := n.X.(*ast.Ident)
			found = found || ok && (name.Name == "sync" || name.Name == "atomic")
		case *ast.Ident:
			found = found || types[n.Name]
		}
		return true
	})
	return found
}

// writes returns where a function assigns to one of the variables or a part of it, deletes from
// it, or locks it. A local variable with the same name is a false positive: rename it.
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

// whole returns the variable that an expression is a part of.
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
