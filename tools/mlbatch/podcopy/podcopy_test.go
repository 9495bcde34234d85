// SPDX-License-Identifier: Apache-2.0

package podcopy_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podcopy"
)

// inside runs commands of this machine, as a container whose program runs in this folder would.
func inside(folder string) podcopy.Exec {
	return func(ctx context.Context, line []string, in io.Reader, out io.Writer) error {
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		var wrong bytes.Buffer
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, in, out, &wrong
		if err := cmd.Run(); err != nil {
			return errors.New(strings.TrimSpace(wrong.String()))
		}
		return nil
	}
}

func file(t *testing.T, name, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, name, content string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != content {
		t.Errorf("%s has %q, %v, want %q", name, got, err, content)
	}
}

func TestFilesComeInAndOut(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	file(t, filepath.Join(here, "data", "a.txt"), "a")
	file(t, filepath.Join(here, "data", "deep", "b.txt"), "b")
	if err := os.Symlink("a.txt", filepath.Join(here, "data", "link")); err != nil {
		t.Fatal(err)
	}
	file(t, filepath.Join(there, "old", "x"), "x")
	for _, row := range []struct{ local, remote, want, content string }{
		{"data", "/new", "new/deep/b.txt", "b"},         // as the path
		{"data", "/old", "old/data/a.txt", "a"},         // into the folder
		{"data/a.txt", "/old/x", "old/x", "a"},          // instead of the file
		{"data/a.txt", "relative", "relative", "a"},     // to where the program runs
		{"data/a.txt", "old/", "old/a.txt", "a"},        // into a folder that must be there
		{"data/a.txt", "-rf", "-rf", "a"},               // a name, and no flag
		{"data/a.txt", "with space", "with space", "a"}, // no shell reads it
		{"data/link", "linked", "linked", "a"},          // what it leads to
		{"data", "old", "old/data/link", "a"},           // a link stays one
	} {
		remote := row.remote
		if filepath.IsAbs(remote) {
			remote = there + remote
		}
		if err := podcopy.Put(t.Context(), inside(there), filepath.Join(here, row.local), remote); err != nil {
			t.Fatal(err)
		}
		has(t, filepath.Join(there, row.want), row.content)
	}
	if info, err := os.Lstat(filepath.Join(there, "linked")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link was copied: %v, %v", info, err)
	}
	left, err := podcopy.Get(t.Context(), inside(there), there+"/old", filepath.Join(here, "copy"))
	if err != nil || left != 1 {
		t.Errorf("%d were left out, %v", left, err)
	}
	has(t, filepath.Join(here, "copy", "data", "deep", "b.txt"), "b")
	if _, err := podcopy.Get(t.Context(), inside(there), "relative", here); err != nil {
		t.Error(err)
	}
	has(t, filepath.Join(here, "relative"), "a")
}

func TestWhatCannotBeCopiedIsASentence(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	file(t, filepath.Join(here, "a"), "a")
	_, err := podcopy.Get(t.Context(), inside(there), "none", here)
	wording.OneSentence(t, "", err, "cannot read none: tar: ")
	err = podcopy.Put(t.Context(), inside(there), filepath.Join(here, "none"), "b")
	wording.OneSentence(t, "", err, "cannot read what is to be copied: ", "none: no such file or directory")
	err = podcopy.Put(t.Context(), inside(there), filepath.Join(here, "a"), "no/folder")
	wording.OneSentence(t, "", err, "cannot write no/folder: tar: ")
	file(t, filepath.Join(there, "f"), "f")
	_, err = podcopy.Get(t.Context(), inside(there), "f", filepath.Join(here, "no", "folder"))
	wording.OneSentence(t, "", err, "cannot write to this machine: ")
}

// A folder that is named by dots has no name of its own: what is in it comes into the folder here.
func TestAFolderIsNamedByDots(t *testing.T) {
	there := t.TempDir()
	file(t, filepath.Join(there, "sub", "deep", "x"), "x")
	for _, remote := range []string{".", "./", "deep/..", "..", there + "/sub", there + "/sub/."} {
		here := t.TempDir()
		from, want := filepath.Join(there, "sub"), "deep/x"
		if remote == ".." {
			want = "sub/deep/x"
		}
		for _, local := range []string{filepath.Join(here, "new"), here} {
			if local == here && strings.HasPrefix(remote, "/") {
				continue // into sub
			}
			if _, err := podcopy.Get(t.Context(), inside(from), remote, local); err != nil {
				t.Fatalf("%s: %v", remote, err)
			}
			has(t, filepath.Join(local, want), "x")
		}
	}
}

// A link that is named is what it leads to, under its own name.
func TestANamedLinkIsFollowed(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	file(t, filepath.Join(there, "step-7", "model.pt"), "7")
	for link, to := range map[string]string{"last.pt": "step-7/model.pt", "last": "step-7", "lost": "nothing", "twice": "last", "step-7/inner": "model.pt"} {
		if err := os.Symlink(to, filepath.Join(there, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		remote, local, want string
		left                int
	}{
		{"last.pt", ".", "last.pt", 0},
		{there + "/last.pt", "other.pt", "other.pt", 0},
		{"last", ".", "last/model.pt", 1}, // a link below it stays in the pod
		{"twice/", "folder", "folder/model.pt", 1},
	} {
		left, err := podcopy.Get(t.Context(), inside(there), row.remote, filepath.Join(here, row.local))
		if err != nil || left != row.left {
			t.Errorf("%s: %d left, %v", row.remote, left, err)
		}
		has(t, filepath.Join(here, row.want), "7")
	}
	_, err := podcopy.Get(t.Context(), inside(there), "lost", here)
	wording.OneSentence(t, "", err, "cannot read lost: ")
}

// Each name of a file is a file.
func TestFilesOfSeveralNamesAreAllCopied(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	file(t, filepath.Join(there, "out", "deep", "a"), "a")
	if err := os.Link(filepath.Join(there, "out", "deep", "a"), filepath.Join(there, "out", "b")); err != nil {
		t.Fatal(err)
	}
	for _, remote := range []string{"out", "out/../out/."} {
		left, err := podcopy.Get(t.Context(), inside(there), remote, filepath.Join(here, "copy"))
		if err != nil || left != 0 {
			t.Errorf("%d left, %v", left, err)
		}
		has(t, filepath.Join(here, "copy", "deep", "a"), "a")
		has(t, filepath.Join(here, "copy", "b"), "a")
		if err := os.RemoveAll(filepath.Join(here, "copy")); err != nil {
			t.Fatal(err)
		}
	}
}

// A container is not trusted with this machine.
func TestNothingIsWrittenOutsideOfTheDestination(t *testing.T) {
	for _, name := range []string{"../out", "out/../../out", "/etc/passwd", "outside", "out/x/../../../y"} {
		here := filepath.Join(t.TempDir(), "here")
		if err := os.Mkdir(here, 0o755); err != nil {
			t.Fatal(err)
		}
		evil := func(_ context.Context, line []string, _ io.Reader, out io.Writer) error {
			if line[0] != "tar" {
				return errors.New("it is no link")
			}
			archive := tar.NewWriter(out)
			for _, entry := range []tar.Header{{Name: "out/link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}} {
				if err := archive.WriteHeader(&entry); err != nil {
					return nil
				}
			}
			_, _ = archive.Write([]byte("!"))
			_ = archive.Close()
			return nil
		}
		_, err := podcopy.Get(t.Context(), evil, "/out", here)
		wording.Wanted(t, err, "which nobody has asked for")
		var found []string
		_ = filepath.WalkDir(filepath.Dir(here), func(file string, entry os.DirEntry, _ error) error {
			if !entry.IsDir() {
				found = append(found, file)
			}
			return nil
		})
		if len(found) > 0 {
			t.Errorf("%s wrote %q", name, found)
		}
	}
}

// Nor does the container choose which file of this machine is copied, or where to.
func TestAnotherNameOfAFileDoesNotLeadOut(t *testing.T) {
	for _, row := range []struct{ first, second, want string }{
		{"/etc/hostname", "out/x", "which nobody has asked for"}, {"out/../../here", "out/x", "which nobody has asked for"},
		{"out/folder", "out/x", "cannot write to this machine: "}, {"out/a", "out/folder", "cannot write to this machine: "},
	} {
		container := func(_ context.Context, line []string, _ io.Reader, out io.Writer) error {
			if line[0] != "tar" {
				return errors.New("it is no link")
			}
			archive := tar.NewWriter(out)
			for _, entry := range []tar.Header{{Name: "out/folder", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "out/a", Typeflag: tar.TypeReg}, {Name: row.second, Typeflag: tar.TypeLink, Linkname: row.first}} {
				if err := archive.WriteHeader(&entry); err != nil {
					return err
				}
			}
			return archive.Close()
		}
		_, err := podcopy.Get(t.Context(), container, "/out", t.TempDir())
		wording.Wanted(t, err, row.want)
	}
}

// A link that is there already does not lead out of the destination either.
func TestALinkDoesNotLeadOut(t *testing.T) {
	here, there, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	file(t, filepath.Join(there, "out", "x"), "x")
	if err := os.Symlink(elsewhere, filepath.Join(here, "out")); err != nil {
		t.Fatal(err)
	}
	_, err := podcopy.Get(t.Context(), inside(there), "out", filepath.Join(here, "."))
	wording.OneSentence(t, "", err, "cannot write to this machine: ")
	if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
		t.Errorf("%v is outside", left)
	}
}

func TestOneOfTwoPlacesIsInAPod(t *testing.T) {
	for _, row := range []struct{ from, to, work, wrong string }{
		{from: "train:/out", to: "here", work: "train"},
		{from: "./a:b", to: "run/study:x", work: "run/study"},
		{from: `C:\data`, to: "train:/x", work: "train"},
		{from: "a", to: "b", wrong: "neither is in a pod: write NAME:PATH for the one that is"},
		{from: "aa:b", to: "cc:d", wrong: "both are in pods: copy to this machine first"},
		{from: "train:", to: "b", wrong: "name a path after the colon: NAME:PATH"},
	} {
		work, err := podcopy.Pair(podcopy.Parse(row.from), podcopy.Parse(row.to))
		if work != row.work || (err == nil) != (row.wrong == "") || err != nil && err.Error() != row.wrong {
			t.Errorf("%s %s: got %s, %v", row.from, row.to, work, err)
		}
	}
}
