// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
)

// asWorkload, if set, makes this test binary behave as the program that it tests. The tests
// need processes, and this avoids building one.
const asWorkload = "TEST_AS_WORKLOAD"

func TestMain(m *testing.M) {
	if os.Getenv(asWorkload) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestWorkloadEndsAsItIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"exit passes its code on":          {args: []string{"exit", "42"}, code: 42},
		"exit 0 is a success":              {args: []string{"exit", "0"}},
		"print writes its text as a line":  {args: []string{"print", "hello there"}, stdout: "hello there\n"},
		"sleep ends by itself":             {args: []string{"sleep", "1ms"}, stdout: "sleeping for 1ms\n"},
		"no subcommand is a usage error":   {code: 2, stderr: "no subcommand"},
		"unknown subcommands are refused":  {args: []string{"dance"}, code: 2, stderr: `unknown subcommand "dance"`},
		"a missing argument is refused":    {args: []string{"sleep"}, code: 2, stderr: "sleep takes 1 arguments, not 0"},
		"a superfluous argument is too":    {args: []string{"pause", "1"}, code: 2, stderr: "pause takes 0 arguments, not 1"},
		"a duration needs a unit":          {args: []string{"linger", "30"}, code: 2, stderr: `"30" is no duration`},
		"a time to sleep too":              {args: []string{"sleep", "30"}, code: 2, stderr: `"30" is no duration`},
		"memory is a whole number of MiB":  {args: []string{"hold", "1Gi"}, code: 2, stderr: `"1Gi" is no number of MiB`},
		"exit codes end at 255":            {args: []string{"exit", "256"}, code: 2, stderr: `"256" is no exit code`},
		"a negative exit code is not read": {args: []string{"exit", "-1"}, code: 2, stderr: `"-1" is no exit code`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := workload(t, c.args...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if code := exitCode(t, cmd.Run()); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if stdout.String() != c.stdout || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stdout %q, stderr %q, want %q and %q", stdout.String(), stderr.String(), c.stdout, c.stderr)
			}
		})
	}
}

func TestSIGTERMEndsWhatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"pause succeeds, it has done its work": {[]string{"pause"}, 0},
		"parent ends as its child does":        {[]string{"parent"}, 0},
		"sleep fails, it was interrupted":      {[]string{"sleep", "1h"}, 143},
		"hold fails, it was interrupted":       {[]string{"hold", "1"}, 143},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := workload(t, c.args...)
			start(t, cmd)
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}

func TestLingerOutlivesSIGTERM(t *testing.T) {
	const farewell = 50 * time.Millisecond
	cmd := workload(t, "linger", farewell.String())
	start(t, cmd)
	told := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 143 || time.Since(told) < farewell {
		t.Errorf("exit code %d after %s", code, time.Since(told))
	}
}

func TestHoldHasTheMemory(t *testing.T) {
	const mebibytes = 32
	cmd := workload(t, "hold", strconv.Itoa(mebibytes))
	start(t, cmd)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, resident, _ := strings.Cut(string(status), "VmRSS:")
	if kib, err := strconv.Atoi(strings.Fields(resident)[0]); err != nil || kib < mebibytes*1024 {
		t.Errorf("%d KiB are resident (%v), want %d MiB", kib, err, mebibytes)
	}
}

// A shell that starts a child and then execs the program gives it a child that it did not
// start, just as the first process of a namespace inherits orphans.
func TestPauseReapsChildrenThatItDidNotStart(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `read go <&3 & exec "$0" pause`, os.Args[0])
	cmd.Env = append(os.Environ(), asWorkload+"=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd.ExtraFiles = []*os.File{r}
	start(t, cmd)
	r.Close()
	if children(t, cmd.Process.Pid) == "" {
		t.Fatal("the program began without the child that the test is about")
	}

	w.Close() // ends the child's read

	until(t, "the child is gone from the table of processes", func() bool { return children(t, cmd.Process.Pid) == "" })
}

func workload(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asWorkload+"=1")
	return cmd
}

// start returns when the program has printed its first line, which means that it handles
// signals.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the program ended before it was ready: %v", err)
	}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// until waits for something that another process does and that can only be polled.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline, look := time.After(patience.For(patience.Short)), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("it did not happen: %s", what)
		case <-look.C:
		}
	}
}

func children(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
