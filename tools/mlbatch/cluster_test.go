// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/tools/commandline"
)

// localclusterIn makes a program of that name in a new folder.
func localclusterIn(t *testing.T, script string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "localcluster")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheLocalclusterBesideThisProgramWins(t *testing.T) {
	beside, inPath := localclusterIn(t, ""), localclusterIn(t, "")
	t.Setenv("PATH", filepath.Dir(inPath))
	for name, row := range map[string]struct{ folder, want string }{
		"beside":    {filepath.Dir(beside), beside},
		"elsewhere": {t.TempDir(), inPath},
	} {
		t.Run(name, func(t *testing.T) {
			executable := func() (string, error) { return filepath.Join(row.folder, "mlbatch"), nil }
			if got, err := findLocalcluster(executable); err != nil || got != row.want {
				t.Errorf("got %s, %v, want %s", got, err, row.want)
			}
		})
	}
}

func TestWithoutLocalclusterASentenceSaysHowToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, _, err := command(t, "cluster", "up")
	want := "cannot find the localcluster program next to mlbatch or in PATH: run 'make build' in a checkout of MLBatch on Linux"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestArgumentsOutputAndExitStatusPassThrough(t *testing.T) {
	path := localclusterIn(t, `echo "out: $*"; echo "progress" >&2; exit 3`)
	t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
	out, progress, err := command(t, "cluster", "up", "--mode=simulated", "--help")
	if out != "out: up --mode=simulated --help\n" || progress != "progress\n" {
		t.Errorf("got %q and %q", out, progress)
	}
	if status := commandline.ExitStatus(0); !errors.As(err, &status) || status != 3 {
		t.Errorf("got %v, want exit status 3", err)
	}
}

func TestALocalclusterThatSucceedsIsNoError(t *testing.T) {
	path := localclusterIn(t, "exit 0")
	t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
	if out, progress, err := command(t, "cluster", "status"); err != nil || strings.TrimSpace(out+progress) != "" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}
