// SPDX-License-Identifier: Apache-2.0

// Package filelock lets one process at a time hold the lock of a path. The kernel
// releases the lock when the process exits, even if it is killed.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// HeldError says which process holds a lock. PID is 0 if it has not written its pid yet.
type HeldError struct{ PID int }

// Holder is "process 12", or "another process" if the pid is unknown.
func (e *HeldError) Holder() string {
	if e.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", e.PID)
}

func (e *HeldError) Error() string { return e.Holder() + " holds the lock" }

// TryLock locks path, or returns a HeldError if the lock is held. The holder may
// remove the file before it unlocks.
func TryLock(path string) (unlock func(), err error) {
	for {
		f, err := open(path)
		if err != nil {
			return nil, err
		}
		if !isAt(f, path) { // a holder removed it after we opened it: others lock another file
			f.Close()
			continue
		}
		if err := f.Truncate(0); err == nil {
			_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // only for HeldError
		}
		return func() { f.Close() }, nil
	}
}

// Lock waits until it can lock path. If it has to wait, it first calls waiting once
// with the holder.
func Lock(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	for told := false; ; told = true {
		unlock, err := TryLock(path)
		var held *HeldError
		if !errors.As(err, &held) {
			return unlock, err
		}
		if !told {
			waiting(held.Holder())
		}
		select { // a blocking flock could not be interrupted
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// open opens and locks the file at path.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	defer f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &HeldError{PID: holder(f)}
	}
	return nil, fmt.Errorf("cannot lock %s: %w", path, err)
}

// isAt reports whether an open file is still the one at path.
func isAt(f *os.File, path string) bool {
	opened, err1 := f.Stat()
	present, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(opened, present)
}

func holder(f *os.File) int {
	data := make([]byte, 16)
	n, _ := f.ReadAt(data, 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data[:n])))
	return pid
}
