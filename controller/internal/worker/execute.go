// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
)

// timedOut is the exit code of a program that took too long, as that of timeout(1).
const timedOut = 124

// grace is how long a program may take to end when it is told to.
const grace = 5 * time.Second

// errTimeout is the cause of the end of a program that took too long.
var errTimeout = errors.New("timeout")

// execute runs the program, and ends all that it has started.
func (w *Worker) execute(ctx context.Context, lease queue.Lease, input, output string) queue.Log {
	if lease.TimeoutSeconds > 0 {
		var enough context.CancelFunc
		ctx, enough = context.WithTimeoutCause(ctx, time.Duration(lease.TimeoutSeconds)*time.Second, errTimeout)
		defer enough()
	}
	//nolint:gosec // The line is the user's program.
	command := exec.CommandContext(ctx, shell(), "-c", w.Line+` "$@"`, "task", input, output)
	command.Env = append(os.Environ(),
		queue.TaskVariable+"="+lease.Task, queue.AttemptVariable+"="+strconv.Itoa(lease.Attempt),
		queue.InputVariable+"="+input, queue.OutputVariable+"="+output)
	var stdout, stderr tail
	command.Stdout, command.Stderr = io.MultiWriter(w.Stdout, &stdout), io.MultiWriter(w.Stderr, &stderr)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = grace
	err := command.Run()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // Nothing may be left to kill.
	}
	log := queue.Log{Worker: w.Name, Code: code(command, err), Stdout: stdout.String(), Stderr: stderr.String()}
	if errors.Is(context.Cause(ctx), errTimeout) && err != nil {
		log.Code, log.Reason = timedOut, "timeout"
	} else if command.ProcessState == nil && err != nil {
		log.Reason = err.Error()
	}
	return log
}

// shell is bash, or sh where there is none.
func shell() string {
	if found, err := exec.LookPath("bash"); err == nil {
		return found
	}
	return "sh"
}

// code is that which a shell would say.
func code(command *exec.Cmd, err error) int {
	state := command.ProcessState
	if state == nil {
		return 126
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	if state.ExitCode() == 0 && err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return 1
	}
	return state.ExitCode()
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - queue.MaxLog; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String is the end.
func (t *tail) String() string { return string(t.text) }
