// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/patience"
)

func TestRunExplainsFailures(t *testing.T) {
	const full = "the disk is full; free some space and run the command again"
	for name, c := range map[string]struct{ script, want string }{
		"it succeeds":                    {"echo fine", ""},
		"it fails and says why":          {"echo to stdout; echo to stderr >&2; exit 3", "exit status 3\nto stdout\nto stderr"},
		"it fails without a word":        {"exit 3", "exit status 3"},
		"the disk is full for Go":        {"echo 'write x: no space left on device'; exit 1", full},
		"the disk is full for C":         {"echo 'dpkg-deb: No space left on device' >&2; exit 1", full},
		"the disk is too small for apt":  {"echo \"E: You don't have enough free space in /x\"; exit 100", full},
		"it complains, but has no error": {"echo 'no space left on device'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(t.Context(), exec.CommandContext(t.Context(), "sh", "-c", c.script))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMissingProgramIsErrNotFound(t *testing.T) {
	if err := Run(t.Context(), exec.CommandContext(t.Context(), "no-such-program")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestAnInterruptedProgramCanCleanUp(t *testing.T) {
	dir := t.TempDir()
	started, temporary := filepath.Join(dir, "started"), filepath.Join(dir, "temporary")
	if out, err := exec.Command("mkfifo", started).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh", "-c", `trap 'kill $!; rm "$0/temporary"; echo interrupted; exit 1' INT
		: > "$0/temporary"; sleep 60 & echo > "$0/started"; wait`, dir)
	go func() {
		_, _ = os.ReadFile(started) // returns when the program runs
		cancel()
	}()
	if err := Run(ctx, cmd); err != context.Canceled { //nolint:errorlint // exactly this error, not wrapped
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(temporary); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its temporary file is left (%v)", err)
	}
}

// A program that outlived its parent would still write to the folder that the next run uses.
func TestAProgramIsKilledWithItsParent(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), runsVariable+`=exec 3>"`+pipe+`"; echo began >&3; exec sleep 60`)
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	program, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	began := make([]byte, len("began\n"))
	if _, err := io.ReadFull(program, began); err != nil {
		t.Fatal(err)
	}
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait() // it was killed, so it returns an error
	if err := program.SetReadDeadline(time.Now().Add(patience.For(30 * time.Second))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(program); err != nil {
		t.Errorf("it still holds its pipe: %v", err)
	}
}

// runsVariable names the environment variable with a script that this test binary runs instead
// of tests.
const runsVariable = "MLBATCH_TEST_RUNS"

func TestMain(m *testing.M) {
	if script := os.Getenv(runsVariable); script != "" {
		ctx := context.Background()
		_ = Run(ctx, exec.CommandContext(ctx, "sh", "-c", script))
		return
	}
	os.Exit(m.Run())
}
