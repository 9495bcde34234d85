// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long an interrupted command may take to remove its clusters.
const grace = 30 * time.Second

// errLate is returned for a command that did not end in its time.
var errLate = errors.New("did not end within")

// execute runs a command and its children as a process group. If the context ends or the limit
// expires, it interrupts the group, and kills after a while what is left of it.
func execute(ctx context.Context, argv []string, limit time.Duration, stdout, stderr io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	if limited.Err() == nil || cmd.Process == nil {
		return err
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group may be empty
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return fmt.Errorf("%w %s", errLate, limit.Round(time.Second))
	}
	return nil
}
