// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Run starts a program, which ends with the test. If the test fails, the program's log is kept.
func Run(t *testing.T, name string, cmd *exec.Cmd) {
	t.Helper()
	file := filepath.Join(os.TempDir(), "mlbatch-test-"+name+".log")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the log of %s is in %s", name, file)
		} else if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
}

// FreeAddress is one of this machine on which nothing listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
