// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/wording"
)

// server is git's own server, with TLS and a password.
type server struct {
	*httptest.Server
	root   string // of the repositories
	commit string // of main
}

const password = "open sesame"

// serve has a repository with a bit of everything.
func serve(t *testing.T) *server {
	t.Helper()
	s := &server{root: t.TempDir()}
	work := filepath.Join(t.TempDir(), "work")
	write(t, filepath.Join(work, "train.py"), "print(1)")
	write(t, filepath.Join(work, "src", "deep", "run.sh"), "date")
	write(t, filepath.Join(work, "src", "a file"), strings.Repeat("0123456789", 200_000)) // more than is kept in memory
	if err := os.Chmod(filepath.Join(work, "src", "deep", "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, "../../etc/passwd", filepath.Join(work, "src", "link"))
	runGit(t, work, "init", "--quiet", "--initial-branch=main")
	runGit(t, work, "add", "--all")
	runGit(t, work, "commit", "--quiet", "--message=one")
	runGit(t, work, "tag", "--annotate", "--message=one", "v1.0")
	s.commit = runGit(t, work, "rev-parse", "HEAD")
	runGit(t, work, "checkout", "--quiet", "-b", "feature/x")
	write(t, filepath.Join(work, "src", "new"), "2")
	runGit(t, work, "add", "--all")
	runGit(t, work, "commit", "--quiet", "--message=two")
	bare := filepath.Join(s.root, "org", "repo")
	runGit(t, work, "clone", "--quiet", "--bare", work, bare)
	runGit(t, bare, "config", "uploadpack.allowReachableSHA1InWant", "true") // as GitHub and GitLab
	runGit(t, work, "init", "--quiet", "--bare", filepath.Join(s.root, "org", "empty"))
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	user, pat, _ := r.BasicAuth()
	if user != "alice" || pat != password {
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "<html>no</html>", http.StatusUnauthorized)
		return
	}
	program, err := exec.LookPath("git")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	(&cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1"}}).ServeHTTP(w, r)
}

// tree is one that the server gives.
func (s *server) tree(path string) Tree {
	return Tree{Repository: s.URL + "/org/repo", Path: path, User: "alice", Password: password, Authorities: s.authority()}
}

func (s *server) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s (install git): %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestATreeOfARepository(t *testing.T) {
	syscall.Umask(0) // as the agent
	s := serve(t)
	large := "-rw-rw-rw- " + strings.Repeat("0123456789", 200_000)
	src := map[string]string{"deep/run.sh": "-rwxrwxrwx date", "a file": large, "link": "-> ../../etc/passwd"}
	all := map[string]string{
		"train.py": "-rw-rw-rw- print(1)", "src/deep/run.sh": "-rwxrwxrwx date", "src/a file": large, "src/link": "-> ../../etc/passwd",
	}
	for path, want := range map[string]map[string]string{
		"main":                      all,
		"v1.0":                      all,
		s.commit:                    all,
		"main/src":                  src,
		"v1.0/src":                  src,
		s.commit + "/src":           src,
		"main/src/deep":             {"run.sh": "-rwxrwxrwx date"},
		"feature/x/src/deep":        {"run.sh": "-rwxrwxrwx date"},
		s.commit[:40] + "/src/deep": {"run.sh": "-rwxrwxrwx date"},
	} {
		to := t.TempDir()
		commit, err := s.tree(path).Fetch(t.Context(), to)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if diff := cmp.Diff(want, found(t, to)); diff != "" {
			t.Errorf("%s (-want +got)\n%.2000s", path, diff)
		}
		if is := commit == s.commit; is != !strings.HasPrefix(path, "feature") {
			t.Errorf("%s is commit %s, and main is %s", path, commit, s.commit)
		}
	}
}

// An init container may run again in its folder: after it was killed, or when its node has been restarted.
// What the program has written meanwhile stays.
func TestAFetchCanBeRepeated(t *testing.T) {
	s, to := serve(t), t.TempDir()
	killed, kill := context.WithCancel(t.Context())
	kill()
	if _, err := s.tree("main").Fetch(killed, to); err == nil {
		t.Fatal("it does not mind that it was killed")
	}
	for path, text := range map[string]string{
		".fetched-1/objects/half": "half", "train.py": "half", "src/a file/was": "a folder", "checkpoint": "7", "src/log": "kept",
	} {
		path = filepath.Join(to, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := s.tree("main").Fetch(t.Context(), to); err != nil {
			t.Fatal(err)
		}
	}
	clean := t.TempDir()
	if _, err := s.tree("main").Fetch(t.Context(), clean); err != nil {
		t.Fatal(err)
	}
	want := found(t, clean)
	want["checkpoint"], want["src/log"] = "-rw------- 7", "-rw------- kept"
	if diff := cmp.Diff(want, found(t, to)); diff != "" {
		t.Errorf("(-want +got)\n%.2000s", diff)
	}
}

func TestWhatCannotBeFetchedIsOneSentence(t *testing.T) {
	s := serve(t)
	for name, row := range map[string]struct {
		change func(*Tree)
		want   string
	}{
		"no password":        {func(f *Tree) { f.Password = "" }, "needs a user and a password: put them into a Secret (user, pat), and name it in repoSecret"},
		"a wrong password":   {func(f *Tree) { f.Password = "x" }, "refuses the user and the password (user, pat) of repoSecret"},
		"no such branch":     {func(f *Tree) { f.Path = "feature/y" }, "has no branch or tag with which feature/y begins"},
		"a part of a branch": {func(f *Tree) { f.Path = "feature" }, "has no branch or tag with which feature begins"},
		"no such folder":     {func(f *Tree) { f.Path = "main/none" }, "has no folder none in commit " + s.commit},
		"a file":             {func(f *Tree) { f.Path = "main/train.py" }, "has no folder train.py in commit " + s.commit},
		"a link":             {func(f *Tree) { f.Path = "main/src/link" }, "has no folder src/link in commit " + s.commit},
		"no such commit":     {func(f *Tree) { f.Path = strings.Repeat("0", 39) + "1" }, "cannot fetch https://"},
		"no such repository": {func(f *Tree) { f.Repository += "s" }, "there is no repository https://"},
		"an empty one":       {func(f *Tree) { f.Repository = s.URL + "/org/empty" }, "is empty"},
		"an unknown server":  {func(f *Tree) { f.Authorities = nil }, "signed by an unknown authority: add the authority's to repoSecret, as ca.crt"},
		"no server":          {func(f *Tree) { f.Repository = "https://127.0.0.1:1/a/b" }, "cannot fetch https://127.0.0.1:1/a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, to := s.tree("main"), t.TempDir()
			row.change(&tree)
			_, err := tree.Fetch(t.Context(), to)
			wording.Wanted(t, err, row.want)
			if strings.ContainsAny(err.Error(), "\n<") || strings.Contains(err.Error(), password) {
				t.Errorf("it is no sentence: %v", err)
			}
			if left := found(t, to); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

// A server that gives no single commits, as git does by default.
func TestACommitThatTheServerDoesNotGive(t *testing.T) {
	s := serve(t)
	runGit(t, filepath.Join(s.root, "org", "repo"), "config", "uploadpack.allowReachableSHA1InWant", "false")
	_, err := s.tree(s.commit).Fetch(t.Context(), t.TempDir())
	wording.Wanted(t, err, "gives no single commits: name a branch or a tag in repo")
}

// A redirect to another server must not carry the password there: neither the request that is
// redirected, nor those after it, which go to the other server at once.
func TestAnotherServerDoesNotGetThePassword(t *testing.T) {
	s := serve(t)
	var seen []string
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.Header.Get("Authorization"))
		r.SetBasicAuth("alice", password) // it gives everybody everything
		s.answer(w, r)
	}))
	defer other.Close()
	away := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.String(), http.StatusFound)
	}))
	defer away.Close()
	tree := s.tree("main")
	tree.Repository = away.URL + "/org/repo"
	if _, err := tree.Fetch(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(seen, "POST ") {
		t.Errorf("the other server gave nothing: %q", seen)
	}
	for _, request := range seen {
		if _, header, _ := strings.Cut(request, " "); header != "" {
			t.Errorf("the other server got %q", request)
		}
	}
}

// What is encrypted stays so: a redirect to http is not followed, with or without a password.
func TestARedirectDoesNotEndTheEncryption(t *testing.T) {
	s := serve(t)
	asked := false
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = true }))
	defer plain.Close()
	away := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.String(), http.StatusFound)
	}))
	defer away.Close()
	tree := s.tree("main")
	tree.Repository = away.URL + "/org/repo"
	_, err := tree.Fetch(t.Context(), t.TempDir())
	if err == nil || asked || strings.Contains(err.Error(), password) {
		t.Errorf("the other server was asked: %t; %v", asked, err)
	}
}

func TestASecretHasAPasswordOrAnAuthority(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  Tree
		says  string
	}{
		"both":               {map[string]string{"user": "alice\n", "pat": " x\n"}, Tree{User: "alice", Password: "x"}, ""},
		"a token alone":      {map[string]string{"pat": "x"}, Tree{User: "git", Password: "x"}, ""},
		"an authority alone": {map[string]string{"ca.crt": "PEM"}, Tree{User: "git", Authorities: []byte("PEM")}, ""},
		"no password":        {map[string]string{"user": "alice"}, Tree{}, "repoSecret has neither the key pat nor ca.crt: add one"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range row.files {
				write(t, filepath.Join(folder, file), text)
			}
			var got Tree
			err := got.ReadSecret(folder)
			if row.says != "" {
				wording.Wanted(t, err, row.says)
			} else if err != nil {
				t.Fatal(err)
			}
			if row.want.Authorities == nil {
				row.want.Authorities = []byte{}
			}
			if diff := cmp.Diff(row.want, got); row.says == "" && diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
