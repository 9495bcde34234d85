// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestTheSecondCommandIsToldWhichOneHoldsTheCluster(t *testing.T) {
	c, _ := newCluster(t)
	unlock, err := c.lock()
	if err != nil {
		t.Fatal(err)
	}
	held := `cluster "unit-x" is being changed by process ` + strconv.Itoa(os.Getpid()) + "; wait until that command ends"
	_, err = c.lock()
	wantSentence(t, err, held)
	wantSentence(t, c.Up(t.Context()), held)
	wantSentence(t, c.Down(), held)
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

func TestALockThatCannotBeMadeIsAnError(t *testing.T) {
	c, _ := newCluster(t)
	c.config.StateDir = filepath.Join(os.DevNull, "x")
	_, err := c.lock()
	wantSentence(t, err, "cannot create the folder /dev/null/x", "XDG_STATE_HOME")
}

func TestDownRemovesTheLockFile(t *testing.T) {
	c, _ := newCluster(t)
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(c.config.StateDir); err != nil || len(left) > 0 {
		t.Errorf("down leaves %v (%v)", left, err)
	}
}
