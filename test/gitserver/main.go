// SPDX-License-Identifier: Apache-2.0

// Command gitserver is git's own server in a pod of an end-to-end test, with TLS and a password.
//
//	gitserver SECRET    a folder with tls.crt, tls.key, user and pat
//
// It has one repository, org/repo, whose branch feature/x has src/hello.sh.
package main

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const root = "/tmp/git"

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gitserver:", err)
		os.Exit(1)
	}
}

func run(secret string) error {
	if err := makeRepository(filepath.Join(root, "org", "repo")); err != nil {
		return err
	}
	var credentials [2]string
	for i, name := range []string{"user", "pat"} {
		text, err := os.ReadFile(filepath.Join(secret, name))
		if err != nil {
			return fmt.Errorf("cannot read who may come: %w", err)
		}
		credentials[i] = string(text)
	}
	git := &cgi.Handler{Path: "/usr/bin/git", Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=/tmp"}}
	server := http.Server{Addr: ":8443", ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, pat, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(user+":"+pat), []byte(strings.Join(credentials[:], ":"))) == 0 {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	})}
	return server.ListenAndServeTLS(filepath.Join(secret, "tls.crt"), filepath.Join(secret, "tls.key"))
}

func makeRepository(dir string) error {
	src := filepath.Join(dir, "src")
	if err := os.MkdirAll(src, 0o755); err != nil {
		return fmt.Errorf("cannot make the repository: %w", err)
	}
	if err := os.WriteFile(filepath.Join(src, "hello.sh"), []byte("echo \"the repository says hello\"\necho *\n"), 0o755); err != nil {
		return fmt.Errorf("cannot make the repository: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=feature/x"},
		{"add", "--all"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", "commit", "--quiet", "--message=one"},
	} {
		cmd := exec.Command("/usr/bin/git", args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=/tmp", "PATH=/usr/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
