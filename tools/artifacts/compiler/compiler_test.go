// SPDX-License-Identifier: Apache-2.0

package compiler

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module returns a module with a program that prints a word from its linker flags.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.org/say\n\ngo 1.24\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nvar word string\n\nfunc main() { print(word + tag) }\n")
	write(t, filepath.Join(dir, "plain.go"), "//go:build !loud\n\npackage main\n\nconst tag = \"\"\n")
	write(t, filepath.Join(dir, "loud.go"), "//go:build loud\n\npackage main\n\nconst tag = \"!\"\n")
	return dir
}

func TestTagsAndLinkerFlagsReachTheProgram(t *testing.T) {
	p := Program{Dir: module(t), Packages: []string{"."}, Tags: "loud", Ldflags: "-X main.word=hello"}
	out := filepath.Join(t.TempDir(), "say")
	must(t, p.Compile(t.Context(), out))
	if said, err := exec.Command(out).CombinedOutput(); err != nil || string(said) != "hello!" {
		t.Errorf("the program says %q, %v", said, err)
	}
	must(t, p.Compile(t.Context(), out+".d/"))
	if _, err := os.Stat(filepath.Join(out+".d", "say")); err != nil {
		t.Errorf("a folder does not get the binary: %v", err)
	}
}

func TestTheUsersSettingsDoNotChangeTheBinary(t *testing.T) {
	p := Program{Dir: module(t), Packages: []string{"."}}
	want := compile(t, p)
	for setting, value := range map[string]string{
		"GOOS": "windows", "GOARCH": "386", "GOAMD64": "v3", "GOARM64": "v9.0", "CGO_ENABLED": "1",
		"GOFLAGS": "-tags=loud", "GOWORK": filepath.Join(t.TempDir(), "go.work"),
	} {
		t.Setenv(setting, value)
	}
	if compile(t, p) != want {
		t.Error("the user's settings are in the binary")
	}
	moved := p
	moved.Dir = module(t)
	if compile(t, moved) != want {
		t.Error("the folder of the sources is in the binary")
	}
}

func TestCrossCompilation(t *testing.T) {
	out := filepath.Join(t.TempDir(), "say")
	p := Program{Dir: module(t), Packages: []string{"."}, OS: "linux", Arch: "arm64"}
	must(t, p.Compile(t.Context(), out))
	f, err := elf.Open(out)
	must(t, err)
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 {
		t.Errorf("on %s/%s it is for %s", runtime.GOOS, runtime.GOARCH, f.Machine)
	}
}

func TestWhatGoesWrongIsTold(t *testing.T) {
	p := Program{Dir: module(t), Packages: []string{"."}}
	write(t, filepath.Join(p.Dir, "main.go"), "package main\n\nfunc main() { undefinedThing() }\n")
	if err := p.Compile(t.Context(), t.TempDir()+"/"); err == nil || !strings.Contains(err.Error(), "undefined: undefinedThing") {
		t.Errorf("a mistake gives %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Compile(cancelled, t.TempDir()+"/"); !errors.Is(err, context.Canceled) {
		t.Errorf("no time gives %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	err := p.Compile(t.Context(), t.TempDir()+"/")
	if want := "cannot find the go command; install Go, or add its folder to PATH"; err == nil || err.Error() != want {
		t.Errorf("no Go gives %v", err)
	}
}

// The go command removes its temporary files only if it is not killed.
func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	if out, err := exec.Command("mkfifo", started).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), "#!/bin/sh\nmkdir $GOTMPDIR/go-build1; echo > "+started+"; exec sleep 60\n")
	must(t, os.Chmod(filepath.Join(dir, "go"), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(started) // returns when the compiler runs
		cancel()
	}()
	out := filepath.Join(t.TempDir(), "bin", "say")
	if err := (Program{}).Compile(ctx, out); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(out))
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// The user's GOGC and GOMEMLIMIT are for programs, not for the compiler.
func TestTheCompilerCollectsNoGarbage(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), "#!/bin/sh\necho $GOGC $GOMEMLIMIT > "+dir+"/told\n")
	must(t, os.Chmod(filepath.Join(dir, "go"), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("GOGC", "10")
	must(t, (Program{}).Compile(t.Context(), filepath.Join(t.TempDir(), "say")))
	if told, err := os.ReadFile(dir + "/told"); err != nil || string(told) != "off 1GiB\n" {
		t.Errorf("it is told %q (%v)", told, err)
	}
}

// The cache key includes these flags: spelling them differently makes everyone rebuild all
// components.
func TestFlagsStayAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		program Program
		want    []string
	}{
		"nothing special": {Program{}, []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w"}},
		"a version":       {Program{Ldflags: "-X main.version=2"}, []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w -X main.version=2"}},
		"tags":            {Program{Tags: "no_zfs no_btrfs"}, []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-tags", "no_zfs no_btrfs"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.program.Flags()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Go compiles a package again if the flags differ.
func TestTheMakefileCompilesWithTheSameFlags(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	must(t, err)
	want := strings.Join((Program{}).Flags()[:2], " ")
	if !strings.Contains(string(makefile), "\nFLAGS := "+want+"\n") {
		t.Errorf("the Makefile's FLAGS are not %s", want)
	}
}

func compile(t *testing.T, p Program) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "say")
	must(t, p.Compile(t.Context(), out))
	data, err := os.ReadFile(out)
	must(t, err)
	return string(data)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
