// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const components = "/apis/batch/v1/namespaces/blue/jobs"

func TestWhoNeverLedMayWrite(t *testing.T) {
	p := replica(t)
	if err := p.send(http.MethodPost, components); err != nil {
		t.Error(err)
	}
	p.received(t, "POST "+components)
}

// A watch lasts longer than a request for the Lease may.
func TestOnlyRequestsForTheLeaseEndInTime(t *testing.T) {
	client := &rest.Config{Host: "127.0.0.1:1", UserAgent: "controller"}
	if _, err := New(client, "mlbatch-system", "lease", 15*time.Second); err != nil {
		t.Fatal(err)
	}
	if client.Timeout != 0 || client.UserAgent != "controller" {
		t.Errorf("all requests of %q end after %s", client.UserAgent, client.Timeout)
	}
}

func TestALeaderWritesUntilItsLeaseRunsOut(t *testing.T) {
	p := replica(t)
	p.renew(t)
	p.received(t, "POST /apis/coordination.k8s.io/v1/namespaces/mlbatch-system/leases?timeout=5s")
	for _, paused := range []struct {
		pause time.Duration
		sent  string
	}{
		{0, "POST " + components + "?timeout=15s"},
		{10 * time.Second, "POST " + components + "?timeout=5s"},
		{14*time.Second + 900*time.Millisecond, "POST " + components + "?timeout=100ms"},
	} {
		p.clock = start.Add(paused.pause)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if err := p.send(method, components); err != nil {
				t.Errorf("after %s: %v", paused.pause, err)
			}
			p.received(t, method+strings.TrimPrefix(paused.sent, http.MethodPost))
		}
	}
}

// The webhook of a leader that was paused still answers: it asks for rights, and the answer changes nothing.
func TestALeaderThatWasPausedReviewsRights(t *testing.T) {
	p := replica(t)
	p.renew(t)
	p.received(t, "POST /apis/coordination.k8s.io/v1/namespaces/mlbatch-system/leases?timeout=5s")
	p.clock = start.Add(time.Minute)
	for _, path := range []string{"/apis/authorization.k8s.io/v1/subjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews"} {
		if err := p.send(http.MethodPost, path); err != nil {
			t.Error(err)
		}
		p.received(t, "POST "+path)
	}
}

// The connection took long to make, or the API server to answer.
func TestARequestEndsWithTheLease(t *testing.T) {
	p := replica(t)
	p.renew(t)
	p.clock = start.Add(15*time.Second - time.Millisecond)
	p.hangs = true
	if err := p.send(http.MethodPost, components); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}

// The process was paused right before it sent the request. Its successor may have ended the attempt.
func TestALeaderThatWasPausedWritesNothing(t *testing.T) {
	p := replica(t)
	p.renew(t)
	p.received(t, "POST /apis/coordination.k8s.io/v1/namespaces/mlbatch-system/leases?timeout=5s")
	p.clock = start.Add(15 * time.Second)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := p.send(method, components); err == nil || !strings.Contains(err.Error(), "another one may lead") {
			t.Errorf("%s: %v", method, err)
		}
	}
	p.received(t)
	if err := p.send(http.MethodGet, components); err != nil {
		t.Error(err)
	}
	p.received(t, "GET "+components)
	// Nobody else wanted to lead.
	if err := p.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := p.send(http.MethodPost, components); err != nil {
		t.Errorf("after it has renewed its Lease: %v", err)
	}
}

func TestALeaderThatGaveItsLeaseBackWritesNothing(t *testing.T) {
	p := replica(t)
	p.renew(t)
	if err := p.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Fatal(err)
	}
	if err := p.send(http.MethodPost, components); err == nil {
		t.Error("it writes, and another replica may lead")
	}
}

// Requests of a leader that could not renew its Lease may be under way. Each ends with the Lease.
func TestAnOldLeaseIsNotGivenBack(t *testing.T) {
	p := replica(t)
	p.renew(t)
	p.received(t, "POST /apis/coordination.k8s.io/v1/namespaces/mlbatch-system/leases?timeout=5s")
	p.clock = start.Add(RenewDeadline(15 * time.Second))
	if err := p.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil {
		t.Error("another replica may lead before these have ended")
	}
	if err := p.send(http.MethodPost, components); err == nil {
		t.Error("it still writes")
	}
	p.received(t)
}

// client-go tries again after a conflict with a renewal that was under way.
func TestALeaseIsGivenBackAtTheSecondTry(t *testing.T) {
	p := replica(t)
	p.renew(t)
	p.fails = true
	if err := p.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil {
		t.Fatal("the API server refuses it, and it is given back")
	}
	p.fails = false
	if err := p.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Errorf("others wait until it runs out: %v", err)
	}
	if err := p.send(http.MethodPost, components); err == nil {
		t.Error("it still writes")
	}
}

// A Lease that could not be renewed is as old as before.
func TestARenewalThatFailsDoesNotCount(t *testing.T) {
	p := replica(t)
	p.renew(t)
	p.clock = start.Add(10 * time.Second)
	p.fails = true
	if err := p.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "one"}); err == nil {
		t.Fatal("the API server is away, and the Lease is renewed")
	}
	p.fails, p.clock = false, start.Add(16*time.Second)
	if err := p.send(http.MethodPost, components); err == nil {
		t.Error("it writes 16 s after it has renewed its Lease of 15 s")
	}
}

// A machine that is suspended stops the monotonic clock, and only that.
func TestThePauseIsMeasuredByTheClockThatSaysMore(t *testing.T) {
	began := time.Now()
	if got := elapsed(began, began.Add(time.Minute)); got != time.Minute {
		t.Errorf("both clocks say a minute, and it was %s", got)
	}
	if got := elapsed(began, began.Round(0).Add(time.Hour)); got != time.Hour {
		t.Errorf("the wall clock says an hour, and it was %s", got)
	}
}

var start = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// paused is a replica before an API server.
type paused struct {
	lock   *Lock
	client *http.Client
	server string
	clock  time.Time
	fails  bool
	hangs  bool

	mu       sync.Mutex
	requests []string
}

func replica(t *testing.T) *paused {
	t.Helper()
	p := &paused{clock: start}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests = append(p.requests, r.Method+" "+r.URL.String())
		if p.hangs {
			<-r.Context().Done()
		}
		if p.fails {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "mlbatch-system", "name": "lease"}}`)) // the client will notice
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	var err error
	if p.lock, err = New(config, "mlbatch-system", "lease", 15*time.Second); err != nil {
		t.Fatal(err)
	}
	p.lock.now = func() time.Time { return p.clock }
	if p.client, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	p.server = server.URL
	return p
}

func (p *paused) renew(t *testing.T) {
	t.Helper()
	if err := p.lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "one"}); err != nil {
		t.Fatal(err)
	}
}

func (p *paused) send(method, path string) error {
	r, err := http.NewRequestWithContext(context.Background(), method, p.server+path, nil)
	if err != nil {
		return err
	}
	answer, err := p.client.Do(r)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

// received: the API server has received these requests since the last call, and no others.
func (p *paused) received(t *testing.T, want ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := strings.Join(p.requests, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the API server received\n%s\nand not\n%s", got, strings.Join(want, "\n"))
	}
	p.requests = nil
}
