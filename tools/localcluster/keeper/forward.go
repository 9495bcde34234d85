// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"time"
)

// acceptPause keeps a failing accept from busy looping.
const acceptPause = 100 * time.Millisecond

// forward passes each connection from a socket outside the node's network namespace to an
// address inside.
func forward(listener net.Listener, address string) {
	for {
		outer, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, for instance
			time.Sleep(acceptPause)
			continue
		}
		go splice(outer.(*net.TCPConn), address)
	}
}

func splice(outer *net.TCPConn, address string) {
	defer outer.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return // the client sees a closed connection
	}
	inner := conn.(*net.TCPConn)
	defer inner.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(inner, outer)
	}()
	pass(outer, inner)
	<-done
}

// pass copies until the source closes, and then closes the target for writing.
func pass(to, from *net.TCPConn) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
}
