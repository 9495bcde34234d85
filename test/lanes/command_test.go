// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"testing"
	"time"
)

// A shell that does not pass interrupts to its background process.
var stubborn = []string{"sh", "-c", "echo begun; sleep 1000 & wait"}

func TestWhatIsNotOverInTimeIsEndedWithAllThatItHasStarted(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	err = execute(t.Context(), stubborn, time.Second, writer, writer)
	writer.Close()
	if err == nil || err.Error() != "did not end within 1s" {
		t.Errorf("the error is %v", err)
	}
	if _, err := io.ReadAll(reader); err != nil { // ends when no process has the pipe open
		t.Error(err)
	}
}

func TestWhatIsInterruptedIsEndedWithAllThatItHasStarted(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, stubborn, time.Hour, writer, writer) }()
	lines := bufio.NewReader(reader)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil || err.Error() != "was interrupted" {
		t.Errorf("the error is %v", err)
	}
	writer.Close()
	if _, err := io.ReadAll(lines); err != nil {
		t.Error(err)
	}
}

func TestACommandFailsAsItSays(t *testing.T) {
	for want, argv := range map[string][]string{"exit status 3": {"sh", "-c", "exit 3"}, "": {"true"}} {
		if got := text(execute(t.Context(), argv, time.Minute, io.Discard, io.Discard)); got != want {
			t.Errorf("%q: %q, not %q", argv, got, want)
		}
	}
	if execute(t.Context(), []string{"/there/is/no/such/program"}, time.Minute, io.Discard, io.Discard) == nil {
		t.Error("a missing program does not return an error")
	}
}
