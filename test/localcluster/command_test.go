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

// point is a point in the progress of a command, as seen from outside.
type point struct {
	name string
	// line is part of a line that the command prints there.
	line string
	// file is a file that it has created there, below the folder of all clusters.
	file func(cluster) string
}

// watched is a running command.
type watched struct {
	cmd *exec.Cmd
	// lines has the output; it is closed when the command ends.
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

// reaches waits until the command reaches a point.
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

// ends waits until the command ends, and returns all of its output.
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

// inFolder returns a file in the cluster's folder.
func inFolder(name string) func(cluster) string {
	return func(c cluster) string { return filepath.Join(c.dir(), name) }
}

// inNew returns a file in the temporary folder that will become the cluster's folder.
func inNew(name string) func(cluster) string {
	return func(c cluster) string { return filepath.Join(filepath.Dir(c.dir()), "."+c.name+".new", name) }
}
