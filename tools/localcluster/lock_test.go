// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTheSecondCommandIsToldWhoIsFirst(t *testing.T) {
	c, _ := newCluster(t)
	unlock, err := c.lock()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.lock()
	wantSentence(t, err, "another command (process "+strconv.Itoa(os.Getpid())+`) is changing cluster "unit-x"; wait until it has ended`)
	wantSentence(t, c.Up(t.Context()), "another command")
	wantSentence(t, c.Down(), "another command")
	other, _ := newCluster(t)
	other.config.StateDir, other.config.Name = c.config.StateDir, "unit-y"
	free, err := other.lock()
	if err != nil {
		t.Fatalf("another cluster is locked too: %v", err)
	}
	free()
	unlock()
	again, err := c.lock()
	if err != nil {
		t.Fatalf("the lock is held although its holder has ended: %v", err)
	}
	again()
}

func TestAHolderThatHasNotSaidItsNameIsStillAHolder(t *testing.T) {
	c, _ := newCluster(t)
	unlock, err := c.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := os.Truncate(filepath.Join(c.config.StateDir, "unit-x.lock"), 0); err != nil {
		t.Fatal(err)
	}
	_, err = c.lock()
	wantSentence(t, err, "another command is changing cluster")
}

func TestALockThatCannotBeMadeIsAnError(t *testing.T) {
	c, _ := newCluster(t)
	c.config.StateDir = filepath.Join(os.DevNull, "x")
	_, err := c.lock()
	wantSentence(t, err, "cannot make the folder /dev/null/x")
}

func TestDownLeavesNoLockAndNobodyHoldsARemovedOne(t *testing.T) {
	c, _ := newCluster(t)
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(c.config.StateDir); err != nil || len(left) > 0 {
		t.Errorf("down leaves %v (%v)", left, err)
	}
	f, err := c.tryLock()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !sameFile(f, c.lockFile()) {
		t.Error("a lock that is there counts as removed")
	}
	if err := os.Remove(c.lockFile()); err != nil {
		t.Fatal(err)
	}
	if sameFile(f, c.lockFile()) {
		t.Error("a lock that was removed counts as there")
	}
	unlock, err := c.lock()
	if err != nil {
		t.Fatalf("a lock on a removed file keeps others out: %v", err)
	}
	unlock()
}

// Who has opened a lock file just before another removes it must not believe
// that it still keeps a third one out.
func TestOnlyOneHoldsTheLockWhileOthersRemoveIt(t *testing.T) {
	c, _ := newCluster(t)
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				unlock, err := c.lock()
				if err != nil {
					continue // another one holds it
				}
				if holders.Add(1) > 1 {
					t.Error("two hold the lock")
				}
				runtime.Gosched()
				holders.Add(-1)
				os.Remove(c.lockFile())
				unlock()
			}
		})
	}
	all.Wait()
}
