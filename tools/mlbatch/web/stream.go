// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mlbatch/mlbatch/tools/mlbatch/web/views"
)

// stream sends what is on a page whenever that changes, as server-sent events.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, of screen) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the request was read
	var shown []byte
	for r.Context().Err() == nil {
		changed := s.asker.watched.Changed()
		now, failed := s.main(r, of)
		if !bytes.Equal(now, shown) {
			shown = now
			if send(w, shown) != nil {
				return
			}
		}
		s.wait(r, changed, failed)
	}
}

// wait waits until something may have changed.
func (s *Server) wait(r *http.Request, changed <-chan struct{}, failed bool) {
	most := s.pace.Most
	if failed {
		most = s.pace.Failed
	}
	select {
	case <-r.Context().Done():
		return
	case <-time.After(s.pace.Least):
	}
	select {
	case <-r.Context().Done():
	case <-changed:
	case <-time.After(most):
	}
}

// main is what is on the page now, and whether something could not be asked.
func (s *Server) main(r *http.Request, of screen) (text []byte, failed bool) {
	page := s.page(r.Context(), of, r.URL.Query(), time.Now())
	var main bytes.Buffer
	if err := s.views.WriteMain(&main, page); err != nil {
		return nil, true
	}
	return main.Bytes(), slices.ContainsFunc(page.Parts, func(p views.Part) bool { return p.Error != "" })
}

// send sends an event.
func send(w http.ResponseWriter, main []byte) error {
	line, err := json.Marshal(string(main))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: main\ndata: %s\n\n", line); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// bounded is a listener with so many connections at a time.
func bounded(l net.Listener, most int) net.Listener {
	return &boundedListener{Listener: l, free: make(chan struct{}, most)}
}

type boundedListener struct {
	net.Listener
	free chan struct{}
}

// Accept waits until a connection may be open.
func (l *boundedListener) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.free })}, nil
}

type boundedConn struct {
	net.Conn
	leave func()
}

// Close makes room for another connection.
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
