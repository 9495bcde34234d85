// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// burnersPerCPU processes per processor compete with a lane.
const burnersPerCPU = 2

// burn keeps the processors busy, at a low priority, until the returned function is called. If nobody calls it, the
// processes end after the limit.
func burn(ctx context.Context, limit time.Duration) (end func(), err error) {
	var burners []*exec.Cmd
	end = func() {
		for _, b := range burners {
			_ = syscall.Kill(-b.Process.Pid, syscall.SIGKILL)
			_ = b.Wait()
		}
	}
	for range burnersPerCPU * runtime.NumCPU() {
		b := exec.CommandContext(ctx, "timeout", strconv.Itoa(int(limit.Seconds())), "nice", "-n", "5", "sh", "-c", "while :; do :; done")
		b.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		b.Cancel = func() error { return syscall.Kill(-b.Process.Pid, syscall.SIGKILL) }
		if err := b.Start(); err != nil {
			end()
			return func() {}, fmt.Errorf("cannot keep the processors busy: %w", err)
		}
		burners = append(burners, b)
	}
	return end, nil
}
