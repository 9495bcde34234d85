// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project are the files of a module in which the lane 'it' tests package story.
var project = map[string]string{
	"go.mod":   "module example.com/m\n\ngo 1.26\n",
	"Makefile": "it:\n\t@go test -v ./story\nother:\n\tgo build ./unrelated\n",
	"story/story_test.go": `//go:build cluster

package story

import (
	"path/filepath"
	_ "example.com/m/engine"
)

var root, name string
var named = []string{"./command", "samples/one.yaml", "../up/one.yaml", "only a word", "docs"}
var joined = filepath.Join(root, "docs", "install.md")
var open = filepath.Join(root, "setup", "teams", name)
`,
	"story/testdata/want.txt":    "",
	"engine/engine.go":           "package engine\n\nimport _ \"example.com/m/deep\"\n",
	"engine/engine_linux.go":     "package engine\n",
	"engine/engine_test.go":      "package engine\n\nvar _ = \"samples/engine.yaml\"\n",
	"engine/testdata/a.txt":      "",
	"engine/module/go.mod":       "module example.com/other\n\ngo 1.26\n",
	"engine/module/other.go":     "package other\n",
	"deep/deep.go":               "package deep\n",
	"command/main.go":            "package main\n\nimport _ \"example.com/m/flags\"\n\nfunc main() { println(\"controller\") }\n",
	"command/main_test.go":       "package main\n",
	"flags/flags.go":             "package flags\n",
	"controller/main.go":         "package main\n\nfunc main() {}\n",
	"unrelated/unrelated.go":     "package unrelated\n",
	"samples/one.yaml":           "",
	"samples/engine.yaml":        "",
	"up/one.yaml":                "",
	"docs/install.md":            "",
	"docs/other.md":              "",
	"setup/teams/demo.yaml":      "",
	"setup/versions.yaml":        "",
	"more/folder/file.yaml":      "",
	logFile:                      "",
	"story/testdata/sub/deep.md": "",
}

func built(t *testing.T) repo {
	t.Helper()
	r := repo(t.TempDir())
	for file, content := range project {
		write(t, r, file, content)
	}
	return r
}

func TestInputsFollowFromTheSources(t *testing.T) {
	r := built(t)
	tree, err := r.tree()
	if err != nil {
		t.Fatal(err)
	}
	command, err := r.command("it")
	if err != nil {
		t.Fatal(err)
	}
	i := tree.inputsOf(command, []string{"more", "docs/evidence"})
	for what, files := range map[string]map[string]bool{
		"all of the tested package":             {"story/story_test.go": true, "story/testdata/want.txt": true, "story/testdata/sub/deep.md": true, "story/new.txt": true},
		"what it imports, without its tests":    {"engine/engine.go": true, "engine/engine_linux.go": true, "engine/engine_test.go": false, "engine/testdata/a.txt": false},
		"what that imports":                     {"deep/deep.go": true},
		"other modules below a package":         {"engine/module/go.mod": true, "engine/module/other.go": true},
		"programs that it names, and theirs":    {"command/main.go": true, "command/main_test.go": false, "flags/flags.go": true, "controller/main.go": true},
		"files that it names":                   {"samples/one.yaml": true, "up/one.yaml": true, "docs/install.md": true, "setup/teams/demo.yaml": true},
		"not those beside them":                 {"docs/other.md": false, "setup/versions.yaml": false, "unrelated/unrelated.go": false},
		"not what only the tests of others use": {"samples/engine.yaml": false},
		"what its row adds":                     {"more/folder/file.yaml": true, "moreover": false},
		"the module":                            {"go.mod": true, "go.sum": true},
		"not the record of lanes":               {logFile: false},
		"no file":                               {"": false},
	} {
		for file, want := range files {
			if got := i.reads(file); got != want {
				t.Errorf("%s: %q is an input: %t", what, file, got)
			}
		}
	}
}

func TestWhatHasChangedSinceALaneWasRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		file, content string
		want          bool
	}{
		"an input":                     {"deep/deep.go", "package deep\n\nvar A = 1\n", true},
		"another file":                 {"docs/other.md", "x", false},
		"its command":                  {"Makefile", strings.Replace(project["Makefile"], "test -v", "test -count=1 -v", 1), true},
		"the command of another lane":  {"Makefile", strings.Replace(project["Makefile"], "build", "vet", 1), false},
		"its command, which is broken": {"Makefile", "it: nothing\n", true},
		"the record":                   {logFile, "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := built(t)
			before := commit(t, r)
			write(t, r, c.file, c.content)
			commit(t, r)
			if got := changed(t, r, before); got != c.want {
				t.Errorf("changed is %t, not %t", got, c.want)
			}
		})
	}
}

func TestWhatIsMovedAwayHasChanged(t *testing.T) {
	r := built(t)
	write(t, r, "deep/data.txt", "some text that git recognizes\n")
	before := commit(t, r)
	if err := os.Rename(filepath.Join(string(r), "deep", "data.txt"), filepath.Join(string(r), "docs", "data.txt")); err != nil {
		t.Fatal(err)
	}
	commit(t, r)
	if !changed(t, r, before) {
		t.Error("an input was moved, and nothing has changed")
	}
}

func TestWhatCannotBeComparedHasChanged(t *testing.T) {
	r := built(t)
	head := commit(t, r)
	for _, unknown := range []string{"", "0123456789ab"} {
		if !changed(t, r, unknown) {
			t.Errorf("compared with commit %q nothing has changed", unknown)
		}
	}
	if changed(t, r, head) {
		t.Error("compared with itself it has changed")
	}
	write(t, r, "go.mod", "this is no module")
	all, err := r.changed([]lane{{name: "it"}}, map[string]record{"it": {commit: head}})
	if err == nil || !all["it"] {
		t.Errorf("a tree that cannot be listed has changed: %v, %v", all, err)
	}
}

func changed(t *testing.T, r repo, since string) bool {
	t.Helper()
	all, err := r.changed([]lane{{name: "it"}}, map[string]record{"it": {commit: since}})
	if err != nil {
		t.Fatal(err)
	}
	return all["it"]
}

// What the real lanes read: a program that is built by its name, a chart, a file that a story names, and no test of
// others.
func TestTheInputsOfLanes(t *testing.T) {
	tree, err := repo(root).tree()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lanes {
		for _, p := range l.more {
			if _, err := os.Stat(filepath.Join(root, p)); err != nil {
				t.Errorf("lane %s: %v", l.name, err)
			}
		}
	}
	for name, files := range map[string]map[string]bool{
		"racks": {
			"controller/main.go": true, "controller/internal/lifecycle/lifecycle.go": true, "charts/mlbatch/values.yaml": true, "setup/versions.yaml": true,
			"samples/topology/one-rack.yaml": true, "test/racks/racks_test.go": true, "test/sandbox/command.go": true, "tools/artifacts/components/kueue/go.mod": true,
			"tools/mlbatch/install.go": true, "test/e2e/main_test.go": false, "charts/charts_test.go": false, "docs/quota.md": false, "tools/artifacts/site/main.go": false,
		},
		"platforms":    {"tools/mlbatch/main.go": true, "test/e2e/main_test.go": false, "charts/mlbatch/values.yaml": true},
		"long-stories": {"docs/codeflare.md": true, "tools/pytorchjob-generator/chart/Chart.yaml": true, "test/e2e/testdata/platform.yaml": true, "test/workload/main.go": true},
		"fuzz":         {"controller/internal/kinds/kinds.go": true, "charts/mlbatch/values.yaml": false},
		"site-test":    {"docs/quota.md": true, "tools/artifacts/site/main.go": true, "test/e2e/main_test.go": false},
		"container":    {"Makefile": true, "controller/main.go": true, "tools/localcluster/demo/main.go": true, "test/container/container_test.go": true},
		"upgrade":      {"docs/install.md": true, "test/upgrade/testdata/next.yaml": true},
		"counted":      {"test/e2e/testdata/platform.yaml": true, "test/e2e/main_test.go": false},
	} {
		command, err := repo(root).command(name)
		if err != nil {
			t.Fatal(err)
		}
		i := tree.inputsOf(command, lanes[indexOf(t, name)].more)
		for file, want := range files {
			if got := i.reads(file); got != want {
				t.Errorf("lane %s: %s is an input: %t", name, file, got)
			}
		}
	}
}

func indexOf(t *testing.T, name string) int {
	t.Helper()
	for i, l := range lanes {
		if l.name == name {
			return i
		}
	}
	t.Fatalf("there is no lane %s", name)
	return -1
}
