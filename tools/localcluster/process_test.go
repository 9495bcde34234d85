// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// process adds a process with one thread to a fake /proc.
func (p proc) process(t *testing.T, pid, parent int, name, state, start string) {
	t.Helper()
	stat := fmt.Sprintf("%d (%s) %s %d %s1 0 %s 0 0\n", pid, name, state, parent, strings.Repeat("0 ", 15), start)
	dir := filepath.Join(string(p), strconv.Itoa(pid))
	write(t, filepath.Join(dir, "stat"), stat)
	write(t, filepath.Join(dir, "comm"), name+"\n")
}

func TestAKeeperIsIdentifiedByPIDAndStartTime(t *testing.T) {
	for name, c := range map[string]struct {
		name, state, start string
		alive              bool
	}{
		"the recorded process lives":                                       {"keeper", "S", "4711", true},
		"its name holds a space":                                           {"my keeper", "S", "4711", true},
		"its name looks like the end of a name":                            {"a) S 1 (b) Z 2", "S", "4711", true},
		"the machine was started anew, and its pid and time are another's": {"other boot", "S", "4711", false},
		"its pid was given to another process":                             {"keeper", "S", "9999", false},
		"it is a zombie":                                                   {"keeper", "Z", "4711", false},
		"it is a zombie with an odd name":                                  {"a) S (b", "Z", "4711", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, dir := proc(t.TempDir()), t.TempDir()
			p.process(t, 42, 1, c.name, c.state, c.start)
			boot := filepath.Join(string(p), "sys", "kernel", "random", "boot_id")
			write(t, boot, "first\n")
			if err := plan.Write(dir, plan.KeeperFile, plan.Keeper{PID: 42, Boot: "first", StartTime: "4711"}); err != nil {
				t.Fatal(err)
			}
			if c.name == "other boot" {
				write(t, boot, "second\n")
			}
			keeper, alive := p.keeperOf(dir)
			if alive != c.alive || keeper.PID != 42 {
				t.Errorf("keeper %v, alive %t", keeper, alive)
			}
		})
	}
}

func TestAKeeperNeedsARecordAndAProcess(t *testing.T) {
	p, dir := proc(t.TempDir()), t.TempDir()
	if _, alive := p.keeperOf(dir); alive {
		t.Error("a folder without a record has a keeper")
	}
	if err := plan.Write(dir, plan.KeeperFile, plan.Keeper{PID: 42}); err != nil {
		t.Fatal(err)
	}
	if _, alive := p.keeperOf(dir); alive {
		t.Error("a process that does not exist lives")
	}
}

// endsFirstThread is set in a process that ends its first thread and goes on.
const endsFirstThread = "LOCALCLUSTER_TEST_ENDS_FIRST_THREAD"

func init() { // the only Go code that the first thread surely runs
	if os.Getenv(endsFirstThread) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

func TestAProcessRunsUntilItsLastThreadHasEnded(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), endsFirstThread+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, pid := thisHost().proc, cmd.Process.Pid
	patience.Await(t, "a zombie", func(context.Context) error {
		if state := p.stat(pid)[0]; state != "Z" {
			return errors.New("its state is " + state)
		}
		return nil
	})
	if _, err := p.startTime(pid); err != nil {
		t.Errorf("while another thread runs: %v", err)
	}
	stdin.Close()
	patience.Await(t, "the end of its last thread", func(context.Context) error {
		if _, err := p.startTime(pid); err == nil {
			return errors.New("it counts as running")
		}
		return nil
	})
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestThisProcessIsFoundInTheRealProc(t *testing.T) {
	p := thisHost().proc
	if start, err := p.startTime(os.Getpid()); err != nil || start == "" || start == "0" {
		t.Errorf("started at %q, %v", start, err)
	}
	if k, err := p.keeper(os.Getpid()); err != nil || len(k.Boot) != 36 {
		t.Errorf("the record is %v, %v", k, err)
	}
	if got := p.parent(os.Getpid()); got != os.Getppid() {
		t.Errorf("the parent is %d, want %d", got, os.Getppid())
	}
}
