// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"strconv"
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
