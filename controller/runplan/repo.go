// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"net/url"
	"slices"
	"strings"
)

// Tree is a folder of a git repository, as the URL of its page names it.
type Tree struct {
	// Repository is the URL from which git clones.
	Repository string
	// Path is the name of a branch, a tag or a commit, and then the folder. Both may have slashes:
	// only the server knows where one ends.
	Path string
}

// TreeOf reads https://HOST/ORG/REPO/tree/REF/DIR.
func TreeOf(page string) (tree Tree, ok bool) {
	at, err := url.Parse(page)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.User != nil || strings.ContainsAny(page, "?#") {
		return Tree{}, false
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(at.Path, "/"), "/"), "/")
	folders, rest := splitTree(parts)
	if len(folders) < 2 || len(rest) == 0 || slices.ContainsFunc(parts, noName) {
		return Tree{}, false
	}
	repository := url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/" + strings.Join(folders, "/")}
	return Tree{Repository: repository.String(), Path: strings.Join(rest, "/")}, true
}

// splitTree returns what is before /tree/, and what is after it. Before it are two folders or, where
// GitLab has more, a dash.
func splitTree(parts []string) (folders, rest []string) {
	tree := slices.Index(parts, "tree")
	if dash := slices.Index(parts, "-"); dash > 0 && dash+1 == tree {
		return parts[:dash], parts[tree+1:]
	}
	if tree != 2 {
		return nil, nil
	}
	return parts[:tree], parts[tree+1:]
}

// noName: neither a folder nor a part of a branch can have this name.
func noName(part string) bool {
	return part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// repoProblems are those of an Application whose code is in a repository.
func repoProblems(in Input) []Problem {
	app := in.Application.Spec
	if app.Repo == "" {
		return nil
	}
	var problems []Problem
	if _, ok := TreeOf(app.Repo); !ok {
		problems = append(problems, impossible("repo must look like https://HOST/ORG/REPO/tree/REF/DIR, and is %s", app.Repo))
	}
	if s := app.RepoSecret; s != nil && s.Namespace != "" && s.Namespace != in.Run.Namespace {
		problems = append(problems, impossible("repoSecret %s is in namespace %s and has to be in the Run's%s", s.Name, s.Namespace, comma(in.Run.Namespace)))
	}
	return problems
}
