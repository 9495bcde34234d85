// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// point is how far a command has come, as seen from outside.
type point struct {
	name string
	// line is part of what it says there.
	line string
	// file is what it has made there, below the folder of all clusters.
	file func(cluster) string
}

// watched is a command that has not ended.
type watched struct {
	cmd *exec.Cmd
	// lines is what it says; it is closed at its end.
	lines chan string
	said  []string
}

func (c cluster) start(t *testing.T, args ...string) *watched {
	t.Helper()
	w := &watched{cmd: c.command(args...), lines: make(chan string)}
	stderr, err := w.cmd.StderrPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			w.lines <- lines.Text()
		}
	}()
	return w
}

// reaches returns when the command is at a point.
func (w *watched) reaches(t *testing.T, c cluster, p point) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		select {
		case line, more := <-w.lines:
			if !more {
				t.Fatalf("the command has ended before this: %s\n%s", p.name, strings.Join(w.said, "\n"))
			}
			w.said = append(w.said, line)
			if p.line != "" && strings.Contains(line, p.line) {
				return
			}
		case <-look.C:
			if p.file != nil && exists(p.file(c)) {
				return
			}
		}
	}
}

// ends returns the command's end and all that it has said.
func (w *watched) ends() (string, error) {
	for line := range w.lines {
		w.said = append(w.said, line)
	}
	err := w.cmd.Wait()
	return strings.Join(w.said, "\n"), err
}

// killedAt runs a command and kills it at a point.
func (c cluster) killedAt(t *testing.T, p point, args ...string) {
	t.Helper()
	w := c.start(t, args...)
	w.reaches(t, c, p)
	kill(t, w.cmd.Process.Pid)
	if said, err := w.ends(); err == nil {
		t.Fatalf("the command has ended before it could be killed:\n%s", said)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// inFolder is a file of the cluster.
func inFolder(name string) func(cluster) string {
	return func(c cluster) string { return filepath.Join(c.dir(), name) }
}

// inNew is a file of what will be the cluster's folder.
func inNew(name string) func(cluster) string {
	return func(c cluster) string { return filepath.Join(filepath.Dir(c.dir()), "."+c.name+".new", name) }
}
