// SPDX-License-Identifier: Apache-2.0

// Package subprocess answers what became of another program. It says it in
// words for people, and it prints nothing.
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

// patience is how long an interrupted program may take to tidy up, and those that
// it has started to end. A program that is killed at once can do neither.
const patience = 20 * time.Second

// Run runs cmd, which was made with exec.CommandContext for ctx, to its end. When
// ctx is done it interrupts the program and returns ctx's error: what an
// interrupted program says helps nobody. Any other error has all that it said. The
// program is killed if this process is: it would go on where the next one begins.
func Run(ctx context.Context, cmd *exec.Cmd) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	runtime.LockOSThread() // the signal comes when the thread ends that has started the program
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err := cmd.Run()
	said := strings.TrimSpace(output.String())
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case diskIsFull(said):
		return errors.New("no space left on the disk; free some and run the command again")
	case said == "":
		return err
	}
	return fmt.Errorf("%w\n%s", err, said)
}

// diskIsFull knows the kernel's words in two spellings, and apt-get's. The
// program has to speak English for it: set LC_ALL if it would not.
func diskIsFull(said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "no space left on device") || strings.Contains(said, "enough free space")
}
