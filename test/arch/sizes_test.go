// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The linter counts the lines of functions. Without these limits, what a function may not have moves into types and
// packages.
const mostMethods, mostFiles = 40, 20

// larger are the types and packages that are beyond a limit, each with a reason. None may be added without one.
var larger = map[string]string{
	"controller/internal/lifecycle.view":        "every check of a snapshot is a method; it becomes several small values",
	"controller/internal/appwrapper.Reconciler": "it observes and acts for each of its kinds",
	"tools/localcluster.Cluster":                "the test-bed, which becomes a module of its own",
	"tools/mlbatch/answers/explain.Objects":     "every rule of why is a method",
	"tools/mlbatch/answers/checkup.Objects":     "every rule of check is a method",
	"tools/mlbatch/teamsfile.File":              "every edit of a file of teams is a method",
	"controller/internal/lifecycle":             "a file for each phase and each check",
	"controller/internal/appwrapper":            "a file for each thing that is observed or done",
	"controller/internal/kinds":                 "a file for each kind",
	"controller/admissionrules":                 "a file for each rule",
	"tools/localcluster":                        "the test-bed, which becomes a module of its own",
	"tools/mlbatch":                             "a file for each command",
	"tools/mlbatch/answers/explain":             "a file for each subject of a rule",
}

func TestTypesAndPackagesAreSmall(t *testing.T) {
	methods, files := map[string]int{}, map[string]int{}
	for _, file := range filesThatEnd(t, ".go") {
		name := filepath.ToSlash(strings.TrimPrefix(file, root+"/"))
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(parsed) {
			continue
		}
		files[path.Dir(name)]++
		for _, d := range parsed.Decls {
			if of := receiver(d); of != "" {
				methods[path.Dir(name)+"."+of]++
			}
		}
	}
	checkSizes(t, "methods", methods, mostMethods)
	checkSizes(t, "files", files, mostFiles)
	for name := range larger {
		if methods[name]+files[name] == 0 {
			t.Errorf("%s, which may be larger, does not exist", name)
		}
	}
}

func checkSizes(t *testing.T, what string, found map[string]int, most int) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		switch n, reason := found[name], larger[name]; {
		case n > most && reason == "":
			t.Errorf("%s has %d %s, more than %d: divide it, or name it here with a reason", name, n, what, most)
		case n <= most && reason != "":
			t.Errorf("%s has only %d %s: remove its exception", name, n, what)
		}
	}
}

// receiver is the type that has a method; empty for all else.
func receiver(d ast.Decl) string {
	f, is := d.(*ast.FuncDecl)
	if !is || f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.IndexExpr:
		return of.X.(*ast.Ident).Name
	}
	return ""
}
