// SPDX-License-Identifier: Apache-2.0

// Command workload runs in the pods of end-to-end tests. It does nothing for the requested time
// and ends as requested. It is also the sandbox of the local cluster's pods, where it holds the
// namespaces and reaps orphans.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Exit codes: a usage error, as in other command-line programs, and 128 plus the number of the
// signal, as a shell reports a program that was killed by it.
const (
	exitUsage      = 2
	exitTerminated = 128 + int(syscall.SIGTERM)
)

const usage = `workload pause            until SIGTERM, then exit 0; reap children
workload parent           start 'workload pause', pass SIGTERM on to it, exit as it does
workload sleep DURATION   then exit 0; on SIGTERM exit 143 at once
workload linger DURATION  until SIGTERM, and for DURATION after it; exit 143
workload hold MEBIBYTES   of memory until SIGTERM, then exit 143
workload exit CODE        at once
workload print TEXT       and exit 0
`

// command runs with its argument (empty if it takes none) and returns the exit code.
type command func(argument string, out io.Writer) (int, error)

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "workload: %v\n\n%s", err, usage)
		code = exitUsage
	}
	os.Exit(code)
}

func run(args []string, out io.Writer) (int, error) {
	commands := map[string]struct {
		run       command
		arguments int
	}{
		"pause":  {pause, 0},
		"parent": {parent, 0},
		"sleep":  {sleep, 1},
		"linger": {linger, 1},
		"hold":   {hold, 1},
		"exit":   {exit, 1},
		"print":  {say, 1},
	}
	if len(args) == 0 {
		return 0, errors.New("no subcommand")
	}
	c, known := commands[args[0]]
	if !known {
		return 0, fmt.Errorf("unknown subcommand %q", args[0])
	}
	if len(args)-1 != c.arguments {
		return 0, fmt.Errorf("%s takes %d arguments, not %d", args[0], c.arguments, len(args)-1)
	}
	return c.run(append(args, "")[1], out)
}

// pause is the first process of its namespace, so it inherits orphans and has to reap them.
// Otherwise zombies would fill the process table.
func pause(_ string, out io.Writer) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	fmt.Fprintln(out, "pausing until SIGTERM")
	for {
		// Before the first signal, too: a child may have ended before Notify.
		reap()
		if s := <-signals; s != syscall.SIGCHLD {
			return 0, nil
		}
	}
}

// reap waits for all children that have ended. Signals are not queued, so one SIGCHLD may stand
// for several children.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) || pid == 0 {
			return
		}
	}
}

// parent is a program with a child process, which must not outlive it.
func parent(_ string, out io.Writer) (int, error) {
	end := termination()
	child := exec.Command("/proc/self/exe", "pause")
	child.Args[0], child.Stdout = os.Args[0], out
	if err := child.Start(); err != nil {
		return 0, err
	}
	go func() {
		<-end
		_ = child.Process.Signal(syscall.SIGTERM) // it may have ended already
	}()
	_ = child.Wait() // returns only its exit code
	return child.ProcessState.ExitCode(), nil
}

func sleep(argument string, out io.Writer) (int, error) {
	d, err := duration(argument)
	if err != nil {
		return 0, err
	}
	end := termination()
	fmt.Fprintln(out, "sleeping for", d)
	select {
	case <-time.After(d):
		return 0, nil
	case <-end:
		return exitTerminated, nil
	}
}

// linger takes some time to stop, as a program that saves its state does.
func linger(argument string, out io.Writer) (int, error) {
	d, err := duration(argument)
	if err != nil {
		return 0, err
	}
	end := termination()
	fmt.Fprintln(out, "lingering until", d, "after SIGTERM")
	<-end
	<-time.After(d)
	return exitTerminated, nil
}

// hold writes to every page, because the kernel counts only those.
func hold(argument string, out io.Writer) (int, error) {
	mebibytes, err := strconv.ParseUint(argument, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no number of MiB up to 65535", argument)
	}
	end := termination()
	memory := make([]byte, mebibytes<<20)
	for at := 0; at < len(memory); at += os.Getpagesize() {
		memory[at] = 1
	}
	fmt.Fprintln(out, "holding", argument, "MiB")
	<-end
	runtime.KeepAlive(memory)
	return exitTerminated, nil
}

func duration(argument string) (time.Duration, error) {
	d, err := time.ParseDuration(argument)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no duration, such as 30s", argument)
	}
	return d, nil
}

func termination() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	return signals
}

func exit(argument string, _ io.Writer) (int, error) {
	code, err := strconv.ParseUint(argument, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%q is no exit code from 0 to 255", argument)
	}
	return int(code), nil
}

func say(argument string, out io.Writer) (int, error) {
	_, err := fmt.Fprintln(out, argument)
	return 0, err
}
