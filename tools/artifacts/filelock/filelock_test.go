// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTheSecondIsToldWhoHoldsTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock := lock(t, path)
	wantHeld(t, path, "process "+strconv.Itoa(os.Getpid()))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, path, "another process")
	other := lock(t, path+"2")
	other()
	unlock()
	again := lock(t, path)
	again()
}

func TestALockThatCannotBeMadeIsAnError(t *testing.T) {
	if _, err := TryLock(filepath.Join(os.DevNull, "lock")); err == nil || errors.As(err, new(*HeldError)) {
		t.Errorf("got %v", err)
	}
}

func TestARemovedLockFileLocksNobodyOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !isAt(f, path) {
		t.Error("a lock file that exists counts as removed")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if isAt(f, path) {
		t.Error("a removed lock file counts as existing")
	}
	unlock := lock(t, path)
	unlock()
}

// A process may open a lock file just before the holder removes it. Locking that file must not
// count as holding the lock.
func TestOnlyOneHoldsTheLockWhileOthersRemoveTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				unlock, err := TryLock(path)
				if err != nil {
					continue // another goroutine holds it
				}
				if holders.Add(1) > 1 {
					t.Error("two hold the lock")
				}
				runtime.Gosched()
				holders.Add(-1)
				os.Remove(path)
				unlock()
			}
		})
	}
	all.Wait()
}

func TestLockWaitsAndSaysSoOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock := lock(t, path)
	told := 0
	second, err := Lock(t.Context(), path, func(string) { told++; unlock() })
	if err != nil || told != 1 {
		t.Fatalf("told %d times, want once (%v)", told, err)
	}
	second()
}

func TestLockCanBeInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	defer lock(t, path)()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Lock(ctx, path, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantHeld(t, path, "process "+strconv.Itoa(os.Getpid()))
}

func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

func wantHeld(t *testing.T, path, holder string) {
	t.Helper()
	_, err := TryLock(path)
	var held *HeldError
	if !errors.As(err, &held) || held.Holder() != holder || err.Error() != holder+" holds the lock" {
		t.Errorf("got %v, want held by %s", err, holder)
	}
}
