// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
)

// object is a manifest in a line.
func object(name string) string {
	return `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + name + `"}}`
}

// fill writes files into a new folder, in which the test then works.
func fill(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// names are FILE/NAME of each document.
func names(documents []manifests.Document) string {
	var all []string
	for _, d := range documents {
		all = append(all, filepath.ToSlash(d.File)+"/"+d.Object.GetName())
	}
	return strings.Join(all, " ")
}

func TestObjectsAreReadInTheirOrder(t *testing.T) {
	list := `{apiVersion: v1, kind: List, items: [` + object("a") + `, {apiVersion: v1, kind: ConfigMapList, items: [` + object("b") + `]}, ` + object("c") + `]}`
	for name, row := range map[string]struct {
		text, want string
	}{
		"documents":               {"---\n" + object("a") + "\n---\n" + object("b") + "\n", "-/a -/b"},
		"without a last newline":  {object("a") + "\n---\n" + object("b"), "-/a -/b"},
		"comments and nothing":    {"# Source: a\n---\n# Source: b\n---\n\n---\n" + object("b") + "\n---\n---\nnull\n", "-/b"},
		"comments of separators":  {"--- # first\n" + object("a") + "\n--- # second\n" + object("b"), "-/a -/b"},
		"lines of Windows":        {object("a") + "\r\n---\r\napiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: b\r\n", "-/a -/b"},
		"a byte order mark":       {"\ufeffapiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "-/a"},
		"a stream of JSON":        {object("a") + object("b") + "\n" + object("c"), "-/a -/b -/c"},
		"an escape of JSON":       {strings.Replace(object("a"), `"metadata"`, `"data": {"smile": "\ud83d\ude00"}, "metadata"`, 1), "-/a"},
		"a list, and one in it":   {list, "-/a -/b -/c"},
		"a list of nothing":       {`{apiVersion: v1, kind: List, items: []}`, ""},
		"anchors":                 {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &a x, labels: {b: *a}}", "-/x"},
		"a separator in a string": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: |\n    ---\n    ...\n", "-/a"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := manifests.Read([]string{"-"}, strings.NewReader(row.text), false)
			if got := names(documents); err != nil || got != row.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestAFolderStandsForItsManifests(t *testing.T) {
	fill(t, map[string]string{
		"work/b.yaml": object("b"), "work/a.json": object("a"), "work/c.yml": object("c"), "work/README.md": "# no manifest", "work/.hidden.yaml": "{",
		"work/deep/d.yaml": object("d"), "work/.git/e.yaml": "{", "other.txt": object("o"),
	})
	for want, recursive := range map[string]bool{
		"other.txt/o work/a.json/a work/b.yaml/b work/c.yml/c":                    false,
		"other.txt/o work/a.json/a work/b.yaml/b work/c.yml/c work/deep/d.yaml/d": true,
	} {
		documents, err := manifests.Read([]string{"other.txt", "work"}, nil, recursive)
		if got := names(documents); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestWhatIsNoObjectIsOneSentence(t *testing.T) {
	fill(t, map[string]string{"empty/README.md": ""})
	for name, row := range map[string]struct{ file, text, says string }{
		"no file":               {"missing.yaml", "", "cannot read the manifests: open missing.yaml"},
		"no manifest":           {"empty", "", "folder empty has no .yaml, .yml, .json file: name the files themselves"},
		"no YAML":               {"-", object("a") + "\n---\na: b: c", "-: cannot read document 2: yaml: mapping values are not allowed"},
		"a tab":                 {"-", "a:\n\tb: 1", "cannot start any token: indent with spaces, not with tabs"},
		"a template":            {"-", "metadata: {name: {{ .Release.Name }}}", "has to be rendered first, as helm template does"},
		"no apiVersion":         {"-", "{kind: ConfigMap}", "it is no Kubernetes object: it needs apiVersion, kind and metadata"},
		"no kind":               {"-", "{apiVersion: v2, name: chart}", "it is no Kubernetes object"},
		"a word":                {"-", "helm: not found", "it is no Kubernetes object"},
		"a field twice":         {"-", "{a: 1, a: 2}", `line 1: key "a" is there twice: remove one`},
		"a field twice in JSON": {"-", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "name": "b"}}`, `duplicate field "metadata.name"`},
		"an end of a document":  {"-", object("a") + "\n...\n" + object("b"), `another one follows it: write a line of "---" before each`},
		"text after the line":   {"-", object("a") + "\n--- a\n", "invalid Yaml document separator: a"},
		"a list of words":       {"-", "{apiVersion: v1, kind: List, items: [a]}", "cannot read document 1: "},
		"a list of no objects":  {"-", "{apiVersion: v1, kind: List, items: [{a: 1}]}", "an item of the List is no Kubernetes object: it needs apiVersion, kind and metadata"},
		"a list without items":  {"-", "{apiVersion: v1, kind: List}", "the List has no items"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := manifests.Read([]string{row.file}, strings.NewReader(row.text), false)
			wording.OneSentence(t, names(documents), err, row.says)
		})
	}
}

// Numbers stay numbers, and words that older YAML takes for others stay as kubectl reads them.
func TestValuesAreThoseThatKubectlReads(t *testing.T) {
	documents, err := manifests.Read([]string{"-"}, strings.NewReader("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: &l {e: x, f: y}}, data: {<<: *l, f: z, a: 9007199254740993, b: on, c: 0.5, d: \"on\"}}"), false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": int64(9007199254740993), "b": true, "c": 0.5, "d": "on", "e": "x", "f": "z"}
	if diff := cmp.Diff(want, documents[0].Object.Object["data"]); diff != "" {
		t.Error(diff)
	}
}
