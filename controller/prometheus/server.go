// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks a Prometheus one question, and says in a sentence why there is no answer. Public, for
// mlbatch usage.
package prometheus

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Server is a Prometheus, or what answers like one. Its files are read anew for each question, because tokens and
// certificates are replaced while a program runs.
type Server struct {
	// URL is that of its API, without /api/v1.
	URL string
	// TokenFile has a bearer token; none is sent if it is empty.
	TokenFile string
	// CAFile has the certificates that may have signed the server's; those of the system if it is empty.
	CAFile string
	// Longest is how many bytes an answer may have; 64 MiB if it is 0.
	Longest int64
}

const (
	// patience is how long an answer may take. Prometheus itself gives a query up after two minutes by default.
	patience = 150 * time.Second
	// longest is how long an answer may be: some hundred thousand series.
	longest = 64 << 20
)

// Check says what is wrong with the address or the files. It does not ask the server.
func (s Server) Check() error {
	_, err := s.connect()
	return err
}

// Ask evaluates a query; at the zero time, the server takes its own. Warnings are the server's: an answer with one may
// lack series.
func (s Server) Ask(ctx context.Context, query string, at time.Time) (samples model.Vector, warnings []string, err error) {
	c, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	answer, warnings, err := prometheusv1.NewAPI(c).Query(ctx, query, at)
	if err != nil {
		return nil, nil, c.explain(err)
	}
	samples, isVector := answer.(model.Vector)
	if !isVector {
		return nil, nil, fmt.Errorf("cannot read the answer of Prometheus: it has a %q instead of a vector", answer.Type())
	}
	return samples, warnings, nil
}

func (s Server) connect() (*connection, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is no address of a Prometheus: write it as https://prometheus.example.com, without /api/v1", s.URL)
	}
	token, err := s.token(u)
	if err != nil {
		return nil, err
	}
	transport, err := s.transport()
	if err != nil {
		return nil, err
	}
	c := &connection{server: s, token: token}
	limited := bounded{transport, cmp.Or(s.Longest, longest)}
	c.Client, err = api.NewClient(api.Config{Address: s.URL, Client: &http.Client{Transport: limited, CheckRedirect: c.follow, Timeout: patience}})
	if err != nil {
		return nil, fmt.Errorf("cannot ask Prometheus: %w", err)
	}
	return c, nil
}

func (s Server) token(u *url.URL) (string, error) {
	if s.TokenFile == "" {
		return "", nil
	}
	if u.Scheme != "https" && !local(u.Hostname()) {
		return "", fmt.Errorf("the token would be readable on the way to %s: use https, or leave it out", u.Host)
	}
	text, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the token for Prometheus: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("cannot read the token for Prometheus: %s is empty", s.TokenFile)
	}
	return token, nil
}

// local is where kubectl port-forward listens.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// transport is for one question, so its connection is not kept.
func (s Server) transport() (*http.Transport, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	if s.CAFile == "" {
		return transport, nil
	}
	text, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of Prometheus: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot read the certificates of Prometheus: %s has none in PEM format", s.CAFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	return transport, nil
}
