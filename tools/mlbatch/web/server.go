// SPDX-License-Identifier: Apache-2.0

// Package web serves a page for one user, on the user's own machine: it says what the commands say, with the user's own
// rights, and changes only what its user has confirmed. What it shows and does it takes from the same functions as the
// commands.
package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clustercheck"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web/guard"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web/views"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// Server serves the page.
type Server struct {
	asker   *asker
	guard   *guard.Guard
	views   views.Views
	streams chan struct{}
	pace    Pace
}

// Pace is how often a page that is open changes.
type Pace struct {
	clusterstate.Pace
	// Least is the pause between two changes, and Most the time after which what is known is judged again, because
	// time alone changes answers, too. Failed is that time if something could not be read.
	Least, Most, Failed time.Duration
	// Rights is how often it is looked whether the user may still read what is shown.
	Rights time.Duration
	// Slowest is how long a browser may take to read something.
	Slowest time.Duration
}

// Usual is the pace for people.
func Usual() Pace {
	return Pace{Pace: clusterstate.Usual(), Least: 500 * time.Millisecond, Most: 30 * time.Second, Failed: 5 * time.Second, Rights: 8 * time.Second, Slowest: time.Minute}
}

// Limits of what a browser gets.
const (
	mostStreams     = 64
	mostConnections = 256
	mostHeaders     = 16 << 10
)

// New returns a server that watches until the context ends.
func New(ctx context.Context, of Source, pace Pace) *Server {
	g := guard.New()
	s := &Server{
		asker: &asker{Source: of, watched: clusterstate.Watch(ctx, of.Client, pace.Pace)},
		guard: g, views: views.New(g.Folder()), streams: make(chan struct{}, mostStreams), pace: pace,
	}
	go s.watchRights(ctx)
	return s
}

// Mapper knows the kinds that a page reads without asking the cluster.
func Mapper() meta.RESTMapper {
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{why.Mapper(), clustercheck.Mapper(), clusterstate.RightsMapper()}}
}

// watchRights looks whether the user may still read what is shown, as long as somebody looks at it. If that is not
// known, everything is asked for again.
func (s *Server) watchRights(ctx context.Context) {
	known := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.pace.Rights):
		}
		if len(s.streams) == 0 {
			continue
		}
		now, err := s.asker.watched.Rights(ctx, s.asker.Namespace)
		if err != nil || now != known {
			known = now
			s.asker.watched.Recheck()
		}
	}
}

// Entrance is the path of the address that can be opened once.
func (s *Server) Entrance() string { return s.guard.Entrance() }

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: mostHeaders,
		ErrorLog:    log.New(io.Discard, "", 0), // whoever sends nonsense writes nothing to the terminal
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(bounded(listener, mostConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler answers all requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, of := range screens {
		path := of.path
		if path == "/" {
			path = "/{$}"
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, of) })
		if !of.still {
			mux.HandleFunc("GET /live"+path, func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, of) })
		}
	}
	const ofJob = "/job/{namespace}/{kind}/{name}"
	mux.HandleFunc("GET "+ofJob, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, job(r)) })
	mux.HandleFunc("GET "+ofJob+"/{action}", s.confirm)
	mux.HandleFunc("POST "+ofJob+"/{action}", s.act)
	mux.HandleFunc("GET /live"+ofJob, func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, job(r)) })
	mux.HandleFunc("GET /api/{command}", s.program)
	for _, asset := range []string{"page.css", "live.js", "icon.svg"} {
		mux.HandleFunc("GET /"+asset, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, views.Assets(), asset) })
	}
	return s.guard.Protect(s.inTime(mux))
}

// inTime ends answers that a browser does not read.
func (s *Server) inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(timed{w, s.pace.Slowest}, r)
	})
}

// timed gives a browser time to read from when something is written: until then it waits for the cluster.
type timed struct {
	http.ResponseWriter

	most time.Duration
}

// WriteHeader begins the time.
func (t timed) WriteHeader(code int) {
	t.begin()
	t.ResponseWriter.WriteHeader(code)
}

// Write begins it again.
func (t timed) Write(text []byte) (int, error) {
	t.begin()
	return t.ResponseWriter.Write(text)
}

func (t timed) begin() {
	_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.most))
}

// Unwrap is for http.NewResponseController.
func (t timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// show answers with a page.
func (s *Server) show(w http.ResponseWriter, r *http.Request, of screen) {
	s.asker.watched.Doubt()
	s.write(w, s.page(r.Context(), of, r.URL.Query(), time.Now()))
}

func (s *Server) write(w http.ResponseWriter, p views.Page) {
	var page bytes.Buffer
	if err := s.views.Write(&page, p); err != nil {
		http.Error(w, "cannot write the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = page.WriteTo(w)
}

// program answers as a command with -o json does.
func (s *Server) program(w http.ResponseWriter, r *http.Request) {
	command, flags := r.PathValue("command"), r.URL.Query()
	q, known := questions[command]
	if !known {
		http.Error(w, "there is no such command", http.StatusNotFound)
		return
	}
	for flag := range flags {
		if !slices.Contains(q.flags, flag) {
			http.Error(w, "unknown flag: --"+url.QueryEscape(flag), http.StatusBadRequest)
			return
		}
	}
	s.asker.watched.Doubt()
	part, err := s.asker.part(r.Context(), command, flags, time.Now())
	if err != nil {
		http.Error(w, part.Error, http.StatusBadGateway)
		return
	}
	var answer bytes.Buffer
	if err := printing.JSON(&answer, printing.Answer(part.Kind, part.Answer)); err != nil {
		http.Error(w, "cannot write the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = answer.WriteTo(w)
}
