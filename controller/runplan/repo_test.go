// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/controller/runplan"
)

func TestTheURLOfATree(t *testing.T) {
	for page, want := range map[string]runplan.Tree{
		"https://github.com/org/repo/tree/main":                     {"https://github.com/org/repo", "main"},
		"https://github.com/org/repo/tree/main/":                    {"https://github.com/org/repo", "main"},
		"https://github.com/org/repo/tree/feature/x/src":            {"https://github.com/org/repo", "feature/x/src"},
		"https://github.com/org/repo/tree/main/tree":                {"https://github.com/org/repo", "main/tree"},
		"https://github.com/org/repo/tree/-/a":                      {"https://github.com/org/repo", "-/a"},
		"https://github.com/tree/repo/tree/main":                    {},
		"https://gitlab.com/org/repo/-/tree/main/src":               {"https://gitlab.com/org/repo", "main/src"},
		"https://gitlab.com/group/sub/repo/-/tree/main":             {"https://gitlab.com/group/sub/repo", "main"},
		"https://git.example.com:8443/org/repo/tree/v1.0/a%20b":     {"https://git.example.com:8443/org/repo", "v1.0/a b"},
		"https://github.com/o%20rg/repo/tree/main":                  {"https://github.com/o%20rg/repo", "main"},
		"https://github.com/org/repo":                               {},
		"https://github.com/org/repo/":                              {},
		"https://github.com/org/repo/tree":                          {},
		"https://github.com/org/repo/tree/":                         {},
		"https://github.com/org/repo/blob/main/a":                   {},
		"https://github.com/org/sub/repo/tree/main":                 {},
		"https://github.com/org/-/tree/main":                        {},
		"https://github.com/org/repo/tree/main/../../x":             {},
		"https://github.com/org/repo/tree/main/%2e%2e/x":            {},
		"https://github.com/org/repo/tree/main//x":                  {},
		"https://github.com/org/repo/tree/main/a%00b":               {},
		"https://github.com/org/repo/tree/main?path=x":              {},
		"https://github.com/org/repo/tree/main#L1":                  {},
		"https://alice:secret@github.com/org/repo/tree/main":        {},
		"https:///org/repo/tree/main":                               {},
		"http://github.com/org/repo/tree/main":                      {},
		"git@github.com:org/repo.git":                               {},
		"ssh://github.com/org/repo/tree/main":                       {},
		"file:///org/repo/tree/main":                                {},
		"github.com/org/repo/tree/main":                             {},
		"https://github.com/org/repo/tree/%zz":                      {},
		"https://github.com/org/repo.git/tree/main":                 {"https://github.com/org/repo.git", "main"},
		"https://github.com/org/repo/tree/refs/heads/main":          {"https://github.com/org/repo", "refs/heads/main"},
		"https://github.com/org/repo/tree/main/-/tree/x":            {"https://github.com/org/repo", "main/-/tree/x"},
		"https://gitlab.com/group/sub/repo/-/tree/main/-/tree/deep": {"https://gitlab.com/group/sub/repo", "main/-/tree/deep"},
	} {
		got, ok := runplan.TreeOf(page)
		if got != want || ok != (want != runplan.Tree{}) {
			t.Errorf("%s: got %+v, %t", page, got, ok)
		}
	}
}

// Whatever is accepted is a repository on the host that the author wrote, without credentials, and a
// path that leads nowhere else.
func FuzzTheURLOfATree(f *testing.F) {
	for _, seed := range []string{
		"https://github.com/org/repo/tree/main/a", "https://gitlab.com/a/b/c/-/tree/x", "https://h/a/b/tree/%2e%2e", "https://u:p@h/a/b/tree/c", "https://[::1]:1/a/b/tree/c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		tree, ok := runplan.TreeOf(page)
		if !ok {
			if tree != (runplan.Tree{}) {
				t.Errorf("refused, and %+v", tree)
			}
			return
		}
		repository, err := url.Parse(tree.Repository)
		if err != nil || repository.Scheme != "https" || repository.User != nil || repository.RawQuery != "" || repository.Fragment != "" {
			t.Fatalf("%q: %v", tree.Repository, err)
		}
		if written, err := url.Parse(page); err != nil || written.Host != repository.Host {
			t.Errorf("%q is on another host: %v", tree.Repository, err)
		}
		if strings.Count(repository.Path, "/") < 2 {
			t.Errorf("%q is no repository", tree.Repository)
		}
		for _, part := range strings.Split(tree.Path+repository.Path, "/")[0:] {
			if part == ".." || strings.ContainsAny(part, "\x00\n") {
				t.Errorf("%+v has %q", tree, part)
			}
		}
		if strings.HasPrefix(tree.Path, "/") || strings.HasPrefix(tree.Path, "-/tree/") && !strings.Contains(page, "/tree/-/tree") {
			t.Errorf("the path is %q", tree.Path)
		}
	})
}
