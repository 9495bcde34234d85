// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
	"github.com/mlbatch/mlbatch/test/patience"
)

// impatient is a broker that waits so long for a client that stalls.
func impatient(t *testing.T, idle time.Duration) (address string) {
	t.Helper()
	store, err := taskstore.New(newMemory(), taskstore.Place{Run: "r", UID: "u", Inbox: "inbox", Outbox: "outbox"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(t.Context(), store, ordinary, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	b.idle = idle
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = b.Serve(t.Context(), listener) }() // It ends with the test.
	return listener.Addr().String()
}

// begun sends the beginning of a request, of which more can be sent.
func begun(t *testing.T, address, method, path, body string, length int) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	fmt.Fprintf(connection, "%s %s HTTP/1.1\r\nHost: broker\r\nContent-Length: %d\r\n\r\n%s", method, path, length, body)
	return connection
}

// A client that adds a task, and says nothing any more, does not keep the queue from its end.
func TestAClientThatStallsHoldsNothingUp(t *testing.T) {
	address := impatient(t, patience.For(time.Second))
	for _, path := range []string{"/v1/tasks/stalls", "/v1/done"} {
		begun(t, address, "POST", path, "abc", 10)
	}
	request(t, "POST", "http://"+address+"/v1/tasks/a", "")
	if code, _ := request(t, "POST", "http://"+address+queue.LeasePath, `{"worker":"w"}`); code != 200 {
		t.Fatal(code)
	}
	request(t, "PUT", "http://"+address+"/v1/results/a/1.1", "r")
	request(t, "POST", "http://"+address+queue.DonePath, `{"task":"a","token":"1.1"}`)
	request(t, "POST", "http://"+address+queue.DrainPath, "")
	for end := time.Now().Add(patience.For(10 * time.Second)); ; time.Sleep(50 * time.Millisecond) {
		if _, text := request(t, "GET", "http://"+address+queue.StatPath, ""); strings.Contains(text, `"closed":true`) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the queue does not close")
		}
	}
}

// Who is slow is not cut off, nor who waits for an answer.
func TestAClientThatIsSlowIsHeard(t *testing.T) {
	t.Parallel() // It sleeps.
	const idle = 6 * time.Second
	address := impatient(t, idle)
	connection := begun(t, address, "POST", "/v1/tasks/slow", "", 5)
	for range 5 {
		time.Sleep(idle / 4) // All together is longer than the broker waits for one.
		fmt.Fprint(connection, "x")
	}
	if code, text := request(t, "POST", "http://"+address+queue.LeasePath, `{"worker":"w"}`); code != 200 || !strings.Contains(text, "slow") {
		t.Errorf("%d %s", code, text)
	}
	waits := begun(t, address, "POST", queue.LeasePath, "{}", 2)
	time.Sleep(idle * 5 / 4) // longer than the broker waits for a request
	request(t, "POST", "http://"+address+"/v1/tasks/next", "")
	answer := make([]byte, 15)
	if _, err := io.ReadFull(waits, answer); err != nil || string(answer) != "HTTP/1.1 200 OK" {
		t.Errorf("%q, %v", answer, err)
	}
}

// A client that asks and asks, and reads no answer, is left.
func TestAClientThatDoesNotReadIsLeft(t *testing.T) {
	client := begun(t, impatient(t, patience.For(time.Second)), "GET", queue.StatPath, "", 0)
	again := []byte("GET " + queue.StatPath + " HTTP/1.1\r\nHost: broker\r\n\r\n")
	for {
		_ = client.SetWriteDeadline(time.Now().Add(patience.For(10 * time.Second)))
		_, err := client.Write(again)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the broker waits for it") // All that is between us is full.
		}
		if err != nil {
			return
		}
	}
}

// body counts how often it is read from.
type body struct {
	io.Reader
	read *atomic.Int32
}

func (b body) Read(p []byte) (int, error) {
	b.read.Add(1)
	return b.Reader.Read(p)
}

// However many workers say at once how their programs ended, the broker has few of their logs in
// its memory.
func TestLogsComeAFewAtATime(t *testing.T) {
	b := &Broker{over: make(chan struct{}), reports: make(chan struct{}, writers)}
	defer close(b.over)
	var read atomic.Int32
	say := func(ctx context.Context, path string) {
		b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, body{strings.NewReader("{}"), &read}).WithContext(ctx))
	}
	for i := range writers {
		go say(t.Context(), []string{queue.DonePath, queue.FailedPath}[i%2])
	}
	for end := time.Now().Add(patience.For(10 * time.Second)); len(b.reports) < writers && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if len(b.reports) != writers {
		t.Fatalf("%d reports are being made", len(b.reports))
	}
	ctx, gone := context.WithCancel(t.Context())
	gone()
	before := read.Load()
	say(ctx, queue.RenewPath)
	if read.Load() == before {
		t.Error("a renewal waits for the reports")
	}
	var late atomic.Int32
	b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", queue.DonePath, body{strings.NewReader("{}"), &late}).WithContext(ctx))
	if late.Load() > 0 {
		t.Error("one more was read")
	}
}
