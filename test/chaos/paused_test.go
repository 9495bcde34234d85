// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// TestALeaderThatWasPausedCreatesNothing stops a leader when it has saved that it starts an attempt, and
// before it creates the Job. It goes on when another one has led and the attempt is over.
func TestALeaderThatWasPausedCreatesNothing(t *testing.T) {
	if err := makeNamespace("paused"); err != nil {
		t.Fatal(err)
	}
	awaitNoLeader(t)
	way := newProxy(t)
	first := startController(t, "first", way)
	one := awaitLeader(t, "")
	startController(t, "second", newProxy(t))
	key := client.ObjectKey{Namespace: "paused", Name: "late"}
	submit(t, key, nil, "")
	awaitPhase(t, key, workload.AppWrapperSuspended)

	paused := way.beforeAnswer(http.MethodPatch, "/namespaces/paused/appwrappers/late/status", func() { _ = first.cmd.Process.Signal(syscall.SIGSTOP) })
	suspend(t, key, false)
	t.Cleanup(func() { _ = first.cmd.Process.Signal(syscall.SIGCONT) }) // it may have ended
	await(t, "the leader is paused", func(context.Context) error {
		select {
		case <-paused:
			return nil
		default:
			return errors.New("it has not saved that it starts the attempt")
		}
	})
	awaitLeader(t, one)
	awaitPhase(t, key, workload.AppWrapperRunning)
	suspend(t, key, true)
	awaitPhase(t, key, workload.AppWrapperSuspended)

	before := way.created("paused")
	first.tell(syscall.SIGCONT) // and it ends, because it has lost its Lease
	if after := way.created("paused"); after != before {
		t.Errorf("the leader that was paused has sent %d creations after it", after-before)
	}
	jobs := &batchv1.JobList{}
	if err := admin.List(t.Context(), jobs, client.InNamespace("paused")); err != nil || len(jobs.Items) > 0 {
		t.Errorf("there are %d Jobs (%v)", len(jobs.Items), err)
	}
	clear(t, "paused")
}

// hook is done once, when the API server has answered a request, and before the controller has the answer.
type hook struct {
	method, path string
	do           func()
	done         chan struct{}
}

func (p *proxy) beforeAnswer(method, path string, do func()) (done <-chan struct{}) {
	h := &hook{method: method, path: path, do: do, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = h
	return h.done
}

// takeHook returns the hook of a request.
func (p *proxy) takeHook(r *http.Request) *hook {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hook; h != nil && r.Method == h.method && strings.HasSuffix(r.URL.Path, h.path) {
		p.hook = nil
		return h
	}
	return nil
}

// answer forwards a request and does the hook before it passes the answer on.
func (h *hook) answer(p *proxy, w http.ResponseWriter, r *http.Request) {
	recorded := httptest.NewRecorder()
	p.forward.ServeHTTP(recorded, r)
	h.do()
	close(h.done)
	for name, values := range recorded.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(recorded.Code)
	fmt.Fprint(w, recorded.Body)
}
