// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository creates a small repository with these patches.
func repository(t *testing.T, patches map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"go.mod":      "module example.com/small\n\ngo 1.26\n",
		"sum.go":      "package small\n\nfunc sum(a, b int) int {\n\treturn a + b\n}\n",
		"sum_test.go": "package small\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Error(\"it cannot add\")\n\t}\n}\n\nfunc TestRows(t *testing.T) {\n\tt.Run(\"zero\", func(t *testing.T) {\n\t\tif sum(1, 0) != 1 {\n\t\t\tt.Fail()\n\t\t}\n\t})\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif sum(1, 2) != 3 {\n\t\t\tt.Fail()\n\t\t}\n\t})\n}\n\nfunc TestBroken(t *testing.T) {\n\tt.Error(\"always\")\n}\n",
	}
	files["ci_test.go"] = "package small\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSumUnlessInCI(t *testing.T) {\n\tif os.Getenv(\"CI\") == \"\" && sum(1, 2) != 3 {\n\t\tt.Fail()\n\t}\n}\n"
	files["other/go.mod"] = "module example.com/other\n\ngo 1.26\n"
	files["other/other_test.go"] = "package other\n\nimport (\n\t\"os\"\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestTheSumOfOthers(t *testing.T) {\n\ttext, _ := os.ReadFile(\"../sum.go\")\n\tif !strings.Contains(string(text), \"a + b\") {\n\t\tt.Fail()\n\t}\n}\n"
	for name, patch := range patches {
		files["test/mutants/"+name+".patch"] = patch
	}
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

// mutation returns a patch that replaces an addition.
func mutation(test, from, to string) string {
	return "Defect: X-1\nBreaks: sums are wrong\nTest: " + test + "\n\n" +
		"diff --git a/sum.go b/sum.go\n--- a/sum.go\n+++ b/sum.go\n@@ -3,3 +3,3 @@ package small\n func sum(a, b int) int {\n-\treturn " + from + "\n+\treturn " + to + "\n }\n"
}

func TestVerdicts(t *testing.T) {
	t.Setenv("CI", "true")
	const (
		sum  = "go test . -run '^TestSum$'"
		rows = "go test . -run '^TestRows$'"
	)
	cases := map[string]struct{ patch, want string }{
		"a mutant that is noticed":                     {mutation(sum, "a + b", "a - b"), ""},
		"a mutant that is noticed for what it is":      {strings.Replace(mutation(sum, "a + b", "a - b"), "\n\n", "\nSays: it cannot add\n\n", 1), ""},
		"one that another module notices":              {mutation("go test -C other . -run '^TestTheSumOfOthers$'", "a + b", "a - b"), ""},
		"one that is noticed for another reason":       {strings.Replace(mutation(sum, "a + b", "a - b"), "\n\n", "\nSays: it cannot count\n\n", 1), `does not say ["it cannot count"]`},
		"one that may be noticed for either of two":    {strings.Replace(mutation(sum, "a + b", "a - b"), "\n\n", "\nSays: it cannot count\nSays: it cannot add\n\n", 1), ""},
		"one that is noticed by the row it names":      {strings.Replace(mutation(rows, "a + b", "a - b"), "\n\n", "\nSays: TestRows/two\n\n", 1), ""},
		"one that is noticed by another row":           {strings.Replace(mutation(rows, "a + b", "a - b"), "\n\n", "\nSays: TestRows/zero\n\n", 1), `does not say ["TestRows/zero"]`},
		"one that continuous integration notices, too": {mutation("go test . -run '^TestSumUnlessInCI$'", "a + b", "a - b"), ""},
		"one that lives":                               {mutation(sum, "a + b", "b + a"), "it lives"},
		"one that does not compile":                    {mutation(sum, "a + b", "a + c"), "does not compile"},
		"one that belongs to an older tree":            {mutation(sum, "b - a", "a - b"), "does not apply"},
		"a test that does not exist":                   {mutation("go test . -run '^TestMul$'", "a + b", "a - b"), "no such test"},
		"a test that fails also without the patch":     {mutation("go test . -run '^TestBroken$'", "a + b", "a - b"), "fails without the patch as well"},
		"a failure that is not one of the test's own":  {mutation(sum, "a + b", "a + b + exit()") + exit, "no test does"},
	}
	patches := map[string]string{}
	for sentence, c := range cases {
		patches[strings.ReplaceAll(sentence, " ", "-")] = c.patch
	}
	root := repository(t, patches)
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), root, []string{strings.ReplaceAll(sentence, " ", "-")}, &out)
			if noticed := err == nil; noticed != (c.want == "") || !strings.Contains(out.String(), c.want) {
				t.Errorf("%v, want %q:\n%s", err, c.want, out.String())
			}
		})
	}
	if content, err := os.ReadFile(filepath.Join(root, "sum.go")); err != nil || !strings.Contains(string(content), "a + b\n") {
		t.Errorf("the tree itself was changed: %s, %v", content, err)
	}
}

// First, the tests of a package run together on the unchanged tree. Each still gets its own
// verdict.
func TestVerdictsOfOnePackage(t *testing.T) {
	of := func(function string) string { return "go test . -run '^" + function + "$'" }
	for sentence, c := range map[string]struct {
		patches map[string]string
		want    []string
	}{
		"all pass": {
			map[string]string{"sum": mutation(of("TestSum"), "a + b", "a - b"), "row": mutation(of("TestRows$/^two"), "a + b", "a - b")},
			[]string{"all 2 mutants were noticed"},
		},
		"one is not there": {
			map[string]string{"sum": mutation(of("TestSum"), "a + b", "a - b"), "mul": mutation(of("TestMul"), "a + b", "a - b")},
			[]string{"noticed", "PROBLEM", "there is no such test"},
		},
		"one fails": {
			map[string]string{"sum": mutation(of("TestSum"), "a + b", "a - b"), "broken": mutation(of("TestBroken"), "a + b", "a - b")},
			[]string{"noticed", "PROBLEM", "fails without the patch as well"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			_ = run(t.Context(), repository(t, c.patches), nil, &out) // its output contains the error, too
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("there is no %q in\n%s", want, out.String())
				}
			}
		})
	}
}

func TestTestsOfAPackageAreOneCommand(t *testing.T) {
	const c = "go test -C c ./d"
	mutants := []mutant{
		{test: "go test ./a -run '^TestOne$/^row$'"},
		{test: "go test ./b -run '^TestOne$'"},
		{test: "go test ./a -run '^TestTwo$'"},
		{test: "go test ./a -run '^TestOne$/^row$'"},
		{test: c + " -run '^TestOne$'"},
		{test: c},
	}
	var got []string
	for _, commands := range packages(mutants) {
		got = append(got, atOnce(commands))
	}
	want := []string{"go test ./a -run ^TestOne$/^row$|^TestTwo$", "go test ./b -run ^TestOne$", c}
	if !slices.Equal(got, want) {
		t.Errorf("the commands are %q, want %q", got, want)
	}
}

// exit is the end of a patch that exits the test binary without a failed test.
const exit = "diff --git a/exit.go b/exit.go\nnew file mode 100644\n--- /dev/null\n+++ b/exit.go\n@@ -0,0 +1,8 @@\n" +
	"+package small\n+\n+import \"os\"\n+\n+func exit() int {\n+\tos.Exit(3)\n+\treturn 0\n+}\n"

func TestHeadsThatSayTooLittle(t *testing.T) {
	const diff = "diff --git a/a b/a\n"
	for sentence, patch := range map[string]string{
		"no difference":     "Defect: X-1\nBreaks: it\nTest: go test .\n",
		"no head":           diff,
		"no test":           "Defect: X-1\nBreaks: it\n" + diff,
		"another program":   "Defect: X-1\nBreaks: it\nTest: rm -r .\n" + diff,
		"a line twice":      "Defect: X-1\nDefect: X-2\nBreaks: it\nTest: go test .\n" + diff,
		"a line of another": "Defect: X-1\nBreaks: it\nTest: go test .\nBecause: so\n" + diff,
	} {
		t.Run(sentence, func(t *testing.T) {
			if m, err := parse(patch); err == nil {
				t.Errorf("parsed as %v", m)
			}
		})
	}
}

// This quick test finds outdated patches. Whether tests detect the defects takes make mutants.
func TestEveryMutantAppliesToThisTree(t *testing.T) {
	root := filepath.Join("..", "..")
	mutants, err := load(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	trees, remove, err := copies(t.Context(), root, 1)
	defer remove()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if err := trees[0].apply(t.Context(), m.file, "--check"); err != nil {
			t.Errorf("%s does not apply: run go run ./test/mutants -refresh: %v", m.file, err)
		}
	}
}
