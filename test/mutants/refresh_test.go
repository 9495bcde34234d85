// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// changing is a repository whose files a test moves and changes.
type changing struct {
	*testing.T
	root string
}

func (c changing) git(args ...string) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "git", append([]string{"-C", c.root, "-c", "user.name=x", "-c", "user.email=x"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func (c changing) commit() {
	c.Helper()
	c.git("add", "--all")
	c.git("commit", "-q", "-m", "as it is now")
}

func (c changing) read(file string) string {
	c.Helper()
	content, err := os.ReadFile(filepath.Join(c.root, file))
	if err != nil {
		c.Fatal(err)
	}
	return string(content)
}

func (c changing) replace(file, from, to string) {
	c.Helper()
	before := c.read(file)
	if !strings.Contains(before, from) {
		c.Fatalf("%s has no %q", file, from)
	}
	if err := os.WriteFile(filepath.Join(c.root, file), []byte(strings.Replace(before, from, to, 1)), 0o600); err != nil {
		c.Fatal(err)
	}
}

func (c changing) move(from, to string) {
	c.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(c.root, to)), 0o755); err != nil {
		c.Fatal(err)
	}
	c.git("mv", from, to)
}

// patch returns the content of the only mutant.
func (c changing) patch() string { return c.read("test/mutants/minus.patch") }

const (
	sumHead = "Defect: X-1\nBreaks: sums are wrong\nTest: go test . -run '^TestSum$'\n\n"
	sumDiff = `diff --git a/sum.go b/sum.go
--- a/sum.go
+++ b/sum.go
@@ -1,5 +1,5 @@
 package small
 
 func sum(a, b int) int {
-	return a + b
+	return a - b
 }
`
	far = "// One.\n// Two.\n// Three.\n// Four.\n"
)

// moving is a repository whose mutant changes the folder add, which has its own test.
func moving(t *testing.T) changing {
	t.Helper()
	head := "Defect: X-1\nBreaks: sums are wrong\nTest: go test ./add -run '^TestAdd$'\nSays: it cannot add\n\n"
	c := changing{t, repository(t, map[string]string{"minus": head + strings.ReplaceAll(sumDiff, "sum.go", "add/sum.go")})}
	c.move2add()
	c.commit()
	return c
}

// move2add copies the sum to the folder add, with a test.
func (c changing) move2add() {
	c.Helper()
	for file, content := range map[string]string{
		"add/sum.go":      c.read("sum.go"),
		"add/add_test.go": "package small\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Error(\"it cannot add\")\n\t}\n}\n",
	} {
		path := filepath.Join(c.root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			c.Fatal(err)
		}
	}
}

func TestRefresh(t *testing.T) {
	above := func(c changing, file string) { c.replace(file, "func sum", far+"func sum") }
	cases := map[string]struct {
		change func(changing)
		want   []string // in the patch
		test   string
	}{
		"lines above have come": {
			func(c changing) { above(c, "add/sum.go") },
			[]string{"@@ -5,5 +5,5 @@", "\n // Four.\n"}, "./add -run '^TestAdd$'",
		},
		"lines beside it are others, which is committed": {
			func(c changing) { c.replace("add/sum.go", "package small\n", "package small\n\n"+far); c.commit() },
			[]string{"@@ -6,5 +6,5 @@", "-\treturn a + b\n+\treturn a - b\n"}, "./add -run '^TestAdd$'",
		},
		"its file has another name": {
			func(c changing) { c.move("add/sum.go", "add/addition.go") },
			[]string{"--- a/add/addition.go\n+++ b/add/addition.go\n"}, "./add -run '^TestAdd$'",
		},
		"its folder is another and its lines have moved": {
			func(c changing) { c.move("add", "maths/add"); c.commit(); above(c, "maths/add/sum.go") },
			[]string{"--- a/maths/add/sum.go\n", "@@ -5,5 +5,5 @@"}, "./maths/add -run '^TestAdd$'",
		},
		"its folder has moved twice, and another has a test of that name": {
			func(c changing) {
				c.replace("sum_test.go", "func TestSum(", "func TestAdd(")
				c.replace("other/other_test.go", "func TestTheSumOfOthers(", "func TestAdd(")
				c.commit()
				c.move("add", "maths")
				c.commit()
				c.move("maths", "arithmetic")
			},
			[]string{"--- a/arithmetic/sum.go\n"}, "./arithmetic -run '^TestAdd$'",
		},
		"its test is in another module": {
			func(c changing) { c.move("add/add_test.go", "other/add/add_test.go") },
			[]string{"--- a/add/sum.go\n"}, "-C other ./add -run '^TestAdd$'",
		},
	}
	for sentence, change := range cases {
		t.Run(sentence, func(t *testing.T) {
			c := moving(t)
			change.change(c)
			var out bytes.Buffer
			if err := refresh(t.Context(), c.root, nil, &out); err != nil {
				t.Fatalf("%v:\n%s", err, out.String())
			}
			got := c.patch()
			head := "Defect: X-1\nBreaks: sums are wrong\nTest: go test " + change.test + "\nSays: it cannot add\n\ndiff --git "
			if !strings.HasPrefix(got, head) {
				t.Errorf("the header has changed:\n%s", got)
			}
			for _, want := range append(change.want, "-\treturn a + b\n+\treturn a - b\n") {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%s", want, got)
				}
			}
			if err := refresh(t.Context(), c.root, nil, &out); err != nil || c.patch() != got {
				t.Errorf("a second time it is\n%s\n%v", c.patch(), err)
			}
		})
	}
}

func TestWhatCannotBeRefreshedIsLeftAlone(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(changing)
		want   string
	}{
		"both have changed the line": {
			func(c changing) { c.replace("sum.go", "a + b", "b + a") }, "minus: conflict in sum.go",
		},
		"its file is gone": {
			func(c changing) { c.git("rm", "-q", "sum.go") }, "minus: conflict in sum.go",
		},
		"the code has the defect": {
			func(c changing) { c.replace("sum.go", "a + b", "a - b") }, "minus: the code is as the patch would make it",
		},
		"it has never applied": {
			func(c changing) { c.replace("test/mutants/minus.patch", "-\treturn a + b", "-\treturn a * b") },
			"minus: it applies to none of the last 300 commits",
		},
		"its test is gone": {
			func(c changing) { c.replace("sum_test.go", "func TestSum(", "func TestSums(") }, "minus: its test is no longer in .",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := changing{t, repository(t, map[string]string{"minus": sumHead + sumDiff})}
			r.commit()
			c.change(r)
			before := r.patch()
			var out bytes.Buffer
			if err := refresh(t.Context(), r.root, nil, &out); err == nil || !strings.Contains(out.String(), c.want) {
				t.Errorf("%v, want %q:\n%s", err, c.want, out.String())
			}
			if got := r.patch(); got != before {
				t.Errorf("it was changed:\n%s", got)
			}
		})
	}
}

// Uncommitted changes are neither staged nor stored as git objects.
func TestRefreshLeavesTheRepositoryAsItIs(t *testing.T) {
	c := changing{t, repository(t, map[string]string{"minus": sumHead + sumDiff})}
	c.commit()
	c.replace("sum.go", "func sum", far+"func sum")
	before := objects(t, c.root)
	var out bytes.Buffer
	if err := refresh(t.Context(), c.root, []string{"minus"}, &out); err != nil {
		t.Fatal(err)
	}
	if after := objects(t, c.root); after != before {
		t.Errorf("git's files are now\n%s\nand were\n%s", after, before)
	}
}

// objects lists git's objects and the entries of its index.
func objects(t *testing.T, root string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, ".git", "objects", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(root, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, "\n") + string(index)
}
