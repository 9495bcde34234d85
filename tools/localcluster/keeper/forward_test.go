// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"testing"
	"time"
)

func TestForwardPassesBytesBothWaysAndTheEndOfEach(t *testing.T) {
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

func TestForwardToNobodyClosesTheConnection(t *testing.T) {
	gone := listen(t)
	address := gone.Addr().String()
	gone.Close()
	if data, _ := io.ReadAll(dialForwarded(t, address)); len(data) > 0 {
		t.Errorf("nobody answered %q", data)
	}
}

func dialForwarded(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	outer := listen(t)
	go forward(outer, address)
	conn, err := net.Dial("tcp", outer.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil { // rather than hang
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
