// SPDX-License-Identifier: Apache-2.0

// Package subprocess runs another program and explains its failure. It prints nothing.
package subprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// interruptTimeout is how long an interrupted program may take to clean up and to stop its
// own children, before it is killed.
const interruptTimeout = 20 * time.Second

// Run runs cmd, which must come from exec.CommandContext with ctx. When ctx is done, it
// interrupts the program and returns ctx's error without output. Any other error has all
// its output. If this process is killed, so is the program: it must not run beside the
// next attempt.
func Run(ctx context.Context, cmd *exec.Cmd) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptTimeout
	runtime.LockOSThread() // the kernel sends Pdeathsig when the starting thread exits
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err := cmd.Run()
	text := strings.TrimSpace(output.String())
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case diskIsFull(text):
		return errors.New("the disk is full; free some space and run the command again")
	case text == "":
		return err
	}
	return fmt.Errorf("%w\n%s", err, text)
}

// diskIsFull recognizes the kernel's error in two spellings, and apt-get's. It needs English
// output: set LC_ALL.
func diskIsFull(output string) bool {
	output = strings.ToLower(output)
	return strings.Contains(output, "no space left on device") || strings.Contains(output, "enough free space")
}
