// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func example() Plan {
	return Plan{
		Name: "x", Dir: "/clusters/x", Cgroup: "mlbatch-x", Forward: "127.0.0.1:6443",
		Binds:   []Bind{{Source: "/clusters/x/node/lib", Target: "/var/lib/kubelet"}},
		Network: Network{Bridge: "cni0", Address: "10.200.0.1/24", Services: "10.96.0.0/16"},
		Programs: []Program{{
			Name: "etcd", Path: "/bin/etcd", Args: []string{"--data-dir=/x"}, Env: []string{"A=b"}, Timeout: time.Minute, PIDNamespace: true,
			Ready: Probe{URL: "https://127.0.0.1", Socket: "/s", CA: "ca", Cert: "cert", Key: "key"},
		}},
	}
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, File, example()); err != nil {
		t.Fatal(err)
	}
	var got Plan
	if err := Read(dir, File, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), got); diff != "" {
		t.Error(diff)
	}
}

// A reader that opened the file before a write must still see all of the old content: the new
// file replaces the old one, and does not overwrite it.
func TestAReaderNeverSeesHalfAFile(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, StatusFile, Status{Waiting: "etcd"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, StatusFile)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, StatusFile, Status{Ready: true}); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, after) {
		t.Error("the file was overwritten in place")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, want 1 (%v)", len(entries), err)
	}
}

func TestReadDistinguishesMissingFromBroken(t *testing.T) {
	dir := t.TempDir()
	if err := Read(dir, File, &Plan{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file gives %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, File), []byte(`{"name": "x`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Read(dir, File, &Plan{}); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a broken file gives %v", err)
	}
}

func TestWriteToAMissingFolderFails(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), "gone"), File, example()); err == nil {
		t.Error("nothing was written and nobody was told")
	}
}
