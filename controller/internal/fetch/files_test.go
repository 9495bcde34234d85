// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/wording"
)

// A ConfigMap is mounted as links into a folder that the kubelet replaces as a whole.
func TestTheFilesOfAConfigMapAreCopiedForEverybody(t *testing.T) {
	syscall.Umask(0) // as the agent
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "..2026_11_22", "train.py"), "print(1)")
	write(t, filepath.Join(from, "..2026_11_22", ".netrc"), "")
	for link, target := range map[string]string{"..data": "..2026_11_22", "train.py": "..data/train.py", ".netrc": "..data/.netrc"} {
		if err := os.Symlink(target, filepath.Join(from, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Files(from, to); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"train.py": "-rwxrwxrwx print(1)", ".netrc": "-rwxrwxrwx "}
	if diff := cmp.Diff(want, found(t, to)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatCannotBeCopiedIsNamed(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "a"), "")
	wording.Wanted(t, Files(filepath.Join(from, "none"), from), "cannot list the files", "none")
	wording.Wanted(t, Files(from, filepath.Join(from, "none")), "cannot write a file", "none/a")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// found has the mode and the content of each file below a folder. Links have their targets.
func found(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if target, err := os.Readlink(path); err == nil {
			all[name] = "-> " + target
			return nil
		}
		text, err := os.ReadFile(path)
		all[name] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
