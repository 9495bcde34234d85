// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A process that was paused (a debugger, a machine that was suspended, swapping) continues where it
// was: between the decision to create an object and the request. Another replica leads by then.
// Nothing else fences it: a new object has no resourceVersion that could be old.

// roundTripper is a function that sends a request.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is f.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fence lets no write pass that the leader sends when its Lease has run out. What it sends before ends with the Lease:
// a connection that takes long to make sends nothing later, and the API server gives up when a webhook takes long.
// Reviews of rights are no writes, and every replica's webhook needs them.
func (l *Lock) fence(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		renewed := l.renewed.Load()
		if renewed == nil || r.Method == http.MethodGet || isReview(r) {
			return next.RoundTrip(r)
		}
		left := l.duration - elapsed(*renewed, l.now())
		if left <= 0 || l.over.Load() {
			return nil, fmt.Errorf("did not send %s %s: the Lease of this controller has run out, and another one may lead", r.Method, r.URL.Path)
		}
		ctx, cancel := context.WithTimeout(r.Context(), left)
		answer, err := next.RoundTrip(bounded(r.Clone(ctx), left))
		if err != nil {
			cancel()
			return nil, err
		}
		answer.Body = &body{answer.Body, cancel}
		return answer, nil
	})
}

// isReview reports whether a request is a question about rights or a token, of which the API server stores nothing.
func isReview(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") || strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/")
}

// bounded asks the API server to give up in time.
func bounded(r *http.Request, left time.Duration) *http.Request {
	query := r.URL.Query()
	query.Set("timeout", max(left.Truncate(time.Millisecond), time.Millisecond).String())
	r.URL.RawQuery = query.Encode()
	return r
}

// body is what is left to read of an answer, until which its request has to last.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the request.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// elapsed is by the clock that says more: the monotonic one stands still while a machine is suspended,
// and the other one may be set back.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
