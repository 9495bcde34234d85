// SPDX-License-Identifier: Apache-2.0

package components

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/setup"
)

// hello is a component that builds quickly, because it imports nothing.
var hello = Component{Name: "hello", Folder: "hello", Packages: []string{"."}, Binaries: []string{"hello"}}

func TestCheckoutsOfAUserShareACache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/big")
	got, err := UserCache("/src/mlbatch")
	if want := (Cache{Dir: "/big/mlbatch/components", Checkout: "/src/mlbatch"}); got != want || err != nil {
		t.Errorf("got %v, want %v (%v)", got, want, err)
	}
}

func newCache(t *testing.T) Cache {
	t.Helper()
	c := Cache{Dir: filepath.Join(t.TempDir(), "cache"), Checkout: t.TempDir()}
	write(t, filepath.Join(c.module(hello), "go.mod"), "module example.org/hello\n\ngo 1.24\n")
	write(t, filepath.Join(c.module(hello), "main.go"), "package main\n\nfunc main() { print(\"hello\") }\n")
	write(t, filepath.Join(c.module(hello), "inside", "main.go"), "package main\n\nfunc main() {}\n")
	return c
}

func TestAFinishedEntryIsUsedAgain(t *testing.T) {
	c := newCache(t)
	progress := &lines{}
	if lacks, err := c.Lacks(hello); err != nil || !lacks {
		t.Errorf("an empty cache has it (%v)", err)
	}
	first := get(t, c, progress)
	if lacks, err := c.Lacks(hello); err != nil || lacks {
		t.Errorf("the cache lacks what was built (%v)", err)
	}
	if out, err := exec.Command(first["hello"]).CombinedOutput(); err != nil || string(out) != "hello" {
		t.Fatalf("the binary says %q, %v", out, err)
	}
	if got := progress.String(); !strings.HasPrefix(got, "[1/1] hello: building\n[1/1] hello: built in ") {
		t.Errorf("progress is %q", got)
	}
	t.Setenv("PATH", t.TempDir()) // without a go command
	second := get(t, c, progress)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenEntryIsBuiltAgain(t *testing.T) {
	c := newCache(t)
	binary := get(t, c, io.Discard)["hello"]
	good, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	write(t, binary, string(good[:len(good)/2]))
	get(t, c, io.Discard)
	if again, err := os.ReadFile(binary); err != nil || string(again) != string(good) {
		t.Errorf("the binary is not what it was (%v)", err)
	}
}

func TestABuildWithoutTheExpectedBinaryFails(t *testing.T) {
	c := newCache(t)
	wrong := hello
	wrong.Binaries = []string{"helo"}
	_, err := c.Get(t.Context(), io.Discard, wrong)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot find a binary of hello: ") {
		t.Errorf("got %v", err)
	}
	wantNoEntry(t, c)
}

func TestTheKeyChangesWithTheInputs(t *testing.T) {
	for name, change := range map[string]func(*testing.T, Cache, *Component){
		"another go.sum":        func(t *testing.T, c Cache, _ *Component) { write(t, filepath.Join(c.module(hello), "go.sum"), "x") },
		"another source file":   func(t *testing.T, c Cache, _ *Component) { write(t, filepath.Join(c.module(hello), "main.go"), "x") },
		"a further source file": func(t *testing.T, c Cache, _ *Component) { write(t, filepath.Join(c.module(hello), "b.go"), "x") },
		"another program in a folder": func(t *testing.T, c Cache, _ *Component) {
			write(t, filepath.Join(c.module(hello), "inside", "main.go"), "x")
		},
		"other linker flags": func(_ *testing.T, _ Cache, comp *Component) { comp.Ldflags = "-X main.version=2" },
		"other build tags":   func(_ *testing.T, _ Cache, comp *Component) { comp.Tags = "no_zfs" },
		"other packages":     func(_ *testing.T, _ Cache, comp *Component) { comp.Packages = []string{"./inside"} },
	} {
		t.Run(name, func(t *testing.T) {
			c, comp := newCache(t), hello
			comp.Packages = []string{".", "./inside"}
			before := key(t, c, comp)
			if again := key(t, c, comp); again != before {
				t.Fatalf("the key of the same is %s and then %s", before, again)
			}
			change(t, c, &comp)
			if key(t, c, comp) == before {
				t.Error("the key is the same")
			}
		})
	}
	a, b := newCache(t), newCache(t)
	if key(t, a, hello) != key(t, b, hello) {
		t.Error("two checkouts of the same do not share an entry")
	}
}

func TestTwoAtOnceBuildOnce(t *testing.T) {
	c := newCache(t)
	progress := &lines{}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := c.Get(t.Context(), progress, hello); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got := strings.Count(progress.String(), "hello: building"); got != 1 {
		t.Errorf("it was built %d times", got)
	}
}

func TestACompileErrorNamesTheComponent(t *testing.T) {
	c := newCache(t)
	write(t, filepath.Join(c.module(hello), "main.go"), "package main\n\nfunc main() { undefinedThing() }\n")
	_, err := c.Get(t.Context(), io.Discard, hello)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot build hello: ") || !strings.Contains(err.Error(), "undefinedThing") {
		t.Errorf("got %v", err)
	}
	wantNoEntry(t, c)
}

func TestACancelledBuildEndsAndLeavesNoEntry(t *testing.T) {
	c := newCache(t)
	started := filepath.Join(t.TempDir(), "started")
	if out, err := exec.Command("mkfifo", started).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fakeGo(t, "echo > "+started+"; exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(started) // returns when the compiler runs
		cancel()
	}()
	_, err := c.Get(ctx, io.Discard, hello)
	if !errors.Is(err, context.Canceled) || err.Error() != "cannot build hello: context canceled" {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	wantNoEntry(t, c)
}

func TestAFullDiskIsOneSentence(t *testing.T) {
	c := newCache(t)
	fakeGo(t, "echo 'compile: writing output: write $WORK/b001/_pkg_.a: no space left on device' >&2; exit 1")
	_, err := c.Get(t.Context(), io.Discard, hello)
	if want := "cannot build hello: the disk is full; free some space and run the command again"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAMissingModuleIsNamed(t *testing.T) {
	c := newCache(t)
	_, err := c.Get(t.Context(), io.Discard, Component{Name: "etcd", Folder: "etcd"})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot read the module of etcd: ") {
		t.Errorf("got %v", err)
	}
}

func TestOwnProgramsAreUpToDateAndKnowTheirVersion(t *testing.T) {
	c := newCache(t)
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	own := Cache{Dir: c.Dir, Checkout: Module(c.Checkout, "hello")}
	for _, word := range []string{"one", "two"} {
		source := fmt.Sprintf("package main\n\nvar version = \"unreleased\"\n\nfunc main() { print(%q + version) }\n", word)
		write(t, filepath.Join(own.Checkout, "cmd", "say", "main.go"), source)
		path, err := own.Own(t.Context(), io.Discard, "cmd/say", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		want := word + versions.Version
		if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("the program says %q, want %q (%v)", out, want, err)
		}
	}
	if _, err := own.Own(t.Context(), io.Discard, "cmd/none", t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "cannot build cmd/none: ") {
		t.Errorf("a folder without a program gives %v", err)
	}
}

// Each component names its module in this repository. No two write a binary of the same name,
// because Get returns them in one map.
func TestComponentsAreDistinctAndPinned(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	c := Cache{Checkout: "../../.."}
	names, binaries := map[string]bool{}, map[string]bool{}
	for _, comp := range slices.Concat(Node(versions), Platform(versions), Optional(versions)) {
		if names[comp.Name] {
			t.Errorf("there are two components %s", comp.Name)
		}
		names[comp.Name] = true
		for _, file := range []string{"go.mod", "go.sum"} {
			if _, err := os.Stat(filepath.Join(c.module(comp), file)); err != nil {
				t.Errorf("%s is not pinned: %v", comp.Name, err)
			}
		}
		for _, b := range comp.Binaries {
			if binaries[b] {
				t.Errorf("two components write a binary %s", b)
			}
			binaries[b] = true
		}
	}
}

func TestKubernetesReportsItsVersion(t *testing.T) {
	const pkg = "-X k8s.io/component-base/version."
	want := pkg + "gitVersion=v1.34.4 " + pkg + "gitMajor=1 " + pkg + "gitMinor=34 " + pkg + "gitTreeState=clean"
	if diff := cmp.Diff(want, kubernetesVersion("v1.34.4")); diff != "" {
		t.Error(diff)
	}
}

// lines is a progress writer for several builds at once.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func get(t *testing.T, c Cache, progress io.Writer) Binaries {
	t.Helper()
	bins, err := c.Get(t.Context(), progress, hello)
	if err != nil {
		t.Fatal(err)
	}
	return bins
}

func key(t *testing.T, c Cache, comp Component) string {
	t.Helper()
	key, err := c.key(comp)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// fakeGo replaces the go command by a shell script.
func fakeGo(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), "#!/bin/sh\n"+text+"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func wantNoEntry(t *testing.T, c Cache) {
	t.Helper()
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("%s is left in the cache", e.Name())
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherKubernetesIsBuiltFromItsModule(t *testing.T) {
	v, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	for minor, want := range map[string]map[string]string{
		"":     {"kubernetes": "kubernetes", "kubelet": "kubernetes", "containerd": "kubernetes", "coscheduler": "kubernetes"},
		"1.30": {"kubernetes": "kubernetes-1.30", "kubelet": "kubernetes-1.30", "containerd": "kubernetes", "coscheduler": "coscheduler-0.30"},
		"1.37": {"kubernetes": "kubernetes-1.37", "kubelet": "kubernetes-1.37", "containerd": "kubernetes", "coscheduler": "kubernetes"},
	} {
		on, err := v.On(minor)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range append(Node(on), Platform(on)...) {
			if folder, told := want[c.Name]; told && c.Folder != folder {
				t.Errorf("on Kubernetes %q, %s is built from %s, not %s", minor, c.Name, c.Folder, folder)
			}
			if c.Name == "kubernetes" && !strings.Contains(c.Ldflags, "gitVersion="+on.LocalCluster.Kubernetes+" ") {
				t.Errorf("on Kubernetes %q, the programs say that they are %s", minor, c.Ldflags)
			}
		}
	}
}
