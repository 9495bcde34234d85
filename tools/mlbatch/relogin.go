// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// login sends requests with the credentials of the kubeconfig, and reads it again if the cluster does not accept them:
// the user may have logged in again.
type login struct {
	load func() (*rest.Config, error)

	mutex     sync.Mutex
	transport http.RoundTripper
	// loaded is when the kubeconfig was read.
	loaded time.Time
}

// again is how long credentials count that were refused. Tests change it.
var again = 3 * time.Second

// current are the credentials as of the last reading.
func (l *login) current() http.RoundTripper {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.transport
}

// renew reads the kubeconfig, unless that was just done.
func (l *login) renew() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if time.Since(l.loaded) < again {
		return false
	}
	l.loaded = time.Now()
	config, err := l.load()
	if err != nil {
		return false
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return false
	}
	l.transport = transport
	return true
}

// RoundTrip sends a request. One without a body is sent once more if other credentials may help.
func (l *login) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.current().RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized || !l.renew() || r.Body != nil {
		return answer, err // what has a body was read already; the next request has the new credentials
	}
	answer.Body.Close()
	return l.current().RoundTrip(r.Clone(r.Context()))
}
