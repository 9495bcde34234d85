// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEachExitReachesItsProcess(t *testing.T) {
	ends := map[int]<-chan syscall.WaitStatus{}
	for code := range 5 {
		p, err := oneReaper().start("/bin/sh", []string{"sh", "-c", fmt.Sprintf("exit %d", code)}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		ends[code] = p.end
	}
	for code, end := range ends {
		if got := (<-end).ExitStatus(); got != code {
			t.Errorf("the program that ended with %d is said to have ended with %d", code, got)
		}
	}
}

func TestStopReturnsAfterTheExit(t *testing.T) {
	p, err := oneReaper().start("/bin/sleep", []string{"sleep", "60"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	p.stop()
	if err := syscall.Kill(p.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it is still there (%v)", err)
	}
}

func TestAnOrphanIsReaped(t *testing.T) {
	// The orphan is ours here, but the reaper does not know it.
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit 0"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	// Wait until it exits without reaping it. Another test's reaper may be faster.
	err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	if err != nil && !errors.Is(err, unix.ECHILD) {
		t.Fatal(err)
	}
	oneReaper().reap()
	if _, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("the orphan is still a zombie (%v)", err)
	}
}
