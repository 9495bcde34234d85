// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tools replaces apt-get and dpkg-deb by scripts.
func tools(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// request asks for nft without libc6. Its scratch folder is apt's.
func request(t *testing.T) (Request, *bytes.Buffer) {
	t.Helper()
	progress := &bytes.Buffer{}
	dir := t.TempDir()
	return Request{
		Packages: []string{"nftables"}, Without: []string{"libc6"},
		Root: filepath.Join(dir, "root"), Scratch: filepath.Join(dir, "apt"), Progress: progress,
	}, progress
}

// downloads returns a fake apt-get that logs its arguments and finds three packages.
func downloads(r Request) string {
	archives := filepath.Join(r.Scratch, "cache", "archives") + "/"
	return `echo "$@" >> ` + r.Scratch + "/asked\nfor p in nftables_1 libc6_2 libc6-dev_2; do : > " + archives + "$p.deb; done"
}

// unpacks is a fake dpkg-deb that creates a file for each archive.
const unpacks = `: > "$3/unpacked-${2##*/}"`

func TestPackagesAreUnpackedWithoutInstallingThem(t *testing.T) {
	r, progress := request(t)
	tools(t, map[string]string{"apt-get": downloads(r), "dpkg-deb": unpacks})
	if err := Unpack(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	unpacked, err := filepath.Glob(filepath.Join(r.Root, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range unpacked {
		unpacked[i] = filepath.Base(unpacked[i])
	}
	want := []string{"unpacked-libc6-dev_2.deb", "unpacked-nftables_1.deb"}
	if diff := cmp.Diff(want, unpacked); diff != "" {
		t.Errorf("libc6 alone should be left out: %s", diff)
	}
	asked, err := os.ReadFile(filepath.Join(r.Scratch, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], " update -o APT::Update::Error-Mode=any") ||
		!strings.HasSuffix(lines[1], " install --yes --no-install-recommends --download-only nftables") {
		t.Fatalf("apt-get was asked %q", lines)
	}
	for _, line := range lines {
		for _, own := range []string{"Dir::State=", "Dir::State::status=", "Dir::Cache="} {
			if !strings.Contains(line, "-o "+own+r.Scratch+"/") {
				t.Errorf("apt-get uses the host's %s", own)
			}
		}
	}
	if want := "Debian packages: downloading nftables and their dependencies\n"; progress.String() != want {
		t.Errorf("progress is %q, want %q", progress, want)
	}
}

func TestWhatGoesWrongIsTold(t *testing.T) {
	fine := map[string]string{"apt-get": "exit 0", "dpkg-deb": unpacks}
	for name, c := range map[string]struct {
		change map[string]string
		want   string
	}{
		"a machine that is no Debian": {
			map[string]string{"apt-get": ""},
			"cannot fetch Debian packages: cannot find apt-get; run this on Debian",
		},
		"package lists that cannot be read": {
			map[string]string{"apt-get": "echo 'E: no network' >&2; exit 100"},
			"cannot read Debian's package lists: apt-get: exit status 100\nE: no network",
		},
		"mirrors that cannot be reached, of which apt-get only warns by itself": {
			map[string]string{"apt-get": `case "$*" in
				*Error-Mode=any*) echo 'E: Could not connect'; exit 100;;
				*install*) echo 'E: Unable to locate package nftables'; exit 100;; esac`},
			"cannot read Debian's package lists: apt-get: exit status 100\nE: Could not connect",
		},
		"a package that does not exist": {
			map[string]string{"apt-get": `case "$*" in *install*) echo 'E: Unable to locate package'; exit 100;; esac`},
			"cannot download Debian packages: apt-get: exit status 100\nE: Unable to locate package",
		},
		"a disk that is full for apt-get": {
			map[string]string{"apt-get": `echo "E: You don't have enough free space in /x"; exit 100`},
			"cannot read Debian's package lists: apt-get: the disk is full; free some space and run the command again",
		},
		"a disk that is full for dpkg-deb": {
			map[string]string{"apt-get": "DOWNLOADS", "dpkg-deb": `[ "$LC_ALL" = C ] && echo 'write: No space left on device' || echo 'write: Kein Platz'; exit 2`},
			"cannot unpack libc6-dev_2.deb: dpkg-deb: the disk is full; free some space and run the command again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LC_ALL", "de_DE.UTF-8")
			r, _ := request(t)
			scripts := map[string]string{}
			for _, tool := range []string{"apt-get", "dpkg-deb"} {
				text, changed := c.change[tool]
				if !changed {
					text = fine[tool]
				}
				if text != "" {
					scripts[tool] = strings.ReplaceAll(text, "DOWNLOADS", downloads(r))
				}
			}
			tools(t, scripts)
			err := Unpack(t.Context(), r)
			if err == nil {
				t.Fatal("there is no error")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUnneededBrokenSourceIsTolerated(t *testing.T) {
	r, _ := request(t)
	tools(t, map[string]string{"apt-get": `case "$*" in *" update "*) exit 100;; esac` + "\n" + downloads(r), "dpkg-deb": unpacks})
	if err := Unpack(t.Context(), r); err != nil {
		t.Error(err)
	}
}

func TestAnInterruptedDownloadIsReportedAsInterrupted(t *testing.T) {
	r, _ := request(t)
	started := filepath.Join(t.TempDir(), "started")
	if out, err := exec.Command("mkfifo", started).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, command := range map[string]string{"the lists are read": "update", "packages are downloaded": "install"} {
		t.Run(name, func(t *testing.T) {
			tools(t, map[string]string{
				"apt-get":  `case "$*" in *" ` + command + ` "*) echo > ` + started + `; exec /bin/sleep 60;; esac; exit 100`,
				"dpkg-deb": unpacks,
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, _ = os.ReadFile(started) // returns when apt-get runs
				cancel()
			}()
			err := Unpack(ctx, r)
			if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), ": context canceled") {
				t.Errorf("got %v", err)
			}
		})
	}
}
