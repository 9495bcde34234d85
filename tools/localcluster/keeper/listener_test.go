// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"testing"
)

func TestNoProgramInheritsTheOuterSocket(t *testing.T) {
	socket, err := listen(t).(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := outerListener(socket)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, listener)
	if _, err := socket.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the inherited file is open (%v)", err)
	}
}
