// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// proxy is between the controller and the API server, and makes requests fail.
type proxy struct {
	*httptest.Server
	forward *httputil.ReverseProxy

	mu      sync.Mutex
	random  *rand.Rand
	share   float64 // of requests that fail
	closed  string  // a resource that is unreachable
	wrong   map[string]int
	creates map[string]int // by the path of the collection
	hook    *hook
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	target, err1 := url.Parse(config.Host)
	transport, err2 := rest.TransportFor(config)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	p := &proxy{
		forward: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1,
			ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
		random:  rand.New(rand.NewPCG(*seed, 0)),
		wrong:   map[string]int{},
		creates: map[string]int{},
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// manners are the ways in which a request fails.
var manners = []struct {
	name string
	do   func(p *proxy, w http.ResponseWriter, r *http.Request)
}{
	{"429", func(_ *proxy, w http.ResponseWriter, _ *http.Request) { refuse(w, 429, "TooManyRequests") }},
	{"429 with a time", func(_ *proxy, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		refuse(w, 429, "TooManyRequests")
	}},
	{"500", func(_ *proxy, w http.ResponseWriter, _ *http.Request) { refuse(w, 500, "InternalError") }},
	{"503", func(_ *proxy, w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "ServiceUnavailable") }},
	{"504, and done", func(p *proxy, w http.ResponseWriter, r *http.Request) {
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		refuse(w, 504, "Timeout")
	}},
	{"cut", func(*proxy, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	{"cut, and done", func(p *proxy, _ http.ResponseWriter, r *http.Request) {
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}},
	{"late", func(p *proxy, w http.ResponseWriter, r *http.Request) {
		<-time.After(time.Second)
		p.forward.ServeHTTP(w, r)
	}},
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"storm"}`, reason, code)
}

// ServeHTTP forwards a request or makes it fail. During a storm, watches are cut short.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	manner, watchFor, closed := p.choose(r)
	if h := p.takeHook(r); h != nil {
		h.answer(p, w, r)
		return
	}
	switch {
	case closed:
		refuse(w, 503, "ServiceUnavailable")
	case watchFor > 0:
		ctx, cancel := context.WithTimeout(r.Context(), watchFor)
		defer cancel()
		p.forward.ServeHTTP(w, r.WithContext(ctx))
	case manner >= 0:
		manners[manner].do(p, w, r)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

func (p *proxy) choose(r *http.Request) (manner int, watchFor time.Duration, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method == http.MethodPost {
		p.creates[r.URL.Path]++
	}
	switch {
	case p.closed != "" && strings.HasSuffix(r.URL.Path, "/"+p.closed):
		return -1, 0, true
	case p.share == 0:
	case r.URL.Query().Get("watch") != "":
		p.wrong["watch cut"]++
		return -1, time.Duration(200+p.random.IntN(3000)) * time.Millisecond, false
	case p.random.Float64() < p.share:
		manner = p.random.IntN(len(manners))
		p.wrong[manners[manner].name]++
		return manner, 0, false
	}
	return -1, 0, false
}

// rage makes a share of the requests fail.
func (p *proxy) rage(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.share = share
}

// expectStorm fails the test if hardly any request failed. About 80 fail in a typical run.
func (p *proxy) expectStorm(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.Logf("seed %d; what went wrong: %v", *seed, p.wrong)
	cut, all := p.wrong["watch cut"], 0
	for _, n := range p.wrong {
		all += n
	}
	if cut == 0 || all-cut < 20 {
		t.Errorf("only %d watches were cut and %d requests failed, want at least 1 and 20", cut, all-cut)
	}
}

// shut makes a resource unreachable and ends its watches; "" makes it reachable again.
func (p *proxy) shut(resource string) {
	p.mu.Lock()
	p.closed = resource
	p.mu.Unlock()
	if resource != "" {
		p.CloseClientConnections()
	}
}

// created counts the attempts to create objects in a namespace, except events.
func (p *proxy) created(namespace string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, times := range p.creates {
		if strings.Contains(path, "/namespaces/"+namespace+"/") && !strings.HasSuffix(path, "/events") {
			n += times
		}
	}
	return n
}
