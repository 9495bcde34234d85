// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
)

func TestForwardCopiesBothWaysAndCloses(t *testing.T) {
	inner := listen(t)
	heard := make(chan string, 1)
	go func() {
		conn, err := inner.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn) // returns only if the client's end is passed on
		heard <- string(all)
		_, _ = io.WriteString(conn, "answer after the end")
	}()
	client := dialForwarded(t, inner.Addr().String())
	if _, err := io.WriteString(client, "question"); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "question" {
		t.Errorf("the server heard %q", got)
	}
	if string(answer) != "answer after the end" {
		t.Errorf("the client heard %q", answer)
	}
}

func TestForwardWithoutAServerClosesTheConnection(t *testing.T) {
	gone := listen(t)
	address := gone.Addr().String()
	gone.Close()
	if data, _ := io.ReadAll(dialForwarded(t, address)); len(data) > 0 {
		t.Errorf("nobody answered %q", data)
	}
}

// failing is a listener whose first Accept fails.
type failing struct {
	net.Listener
	failed bool
}

func (f *failing) Accept() (net.Conn, error) {
	if !f.failed {
		f.failed = true
		return nil, syscall.EMFILE
	}
	return f.Listener.Accept()
}

func TestForwardRetriesAccept(t *testing.T) {
	inner, outer := listen(t), listen(t)
	go forward(&failing{Listener: outer}, inner.Addr().String())
	client := connect(t, outer)
	conn, err := inner.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
		t.Error(err)
	}
}

func TestForwardEndsWithItsListener(t *testing.T) {
	outer := listen(t)
	outer.Close()
	forward(outer, "127.0.0.1:1") // returns
}

func dialForwarded(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	outer := listen(t)
	go forward(outer, address)
	return connect(t, outer)
}

// connect connects to a listener, with a deadline so that the test cannot hang.
func connect(t *testing.T, outer net.Listener) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", outer.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience.For(patience.Short))); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}
