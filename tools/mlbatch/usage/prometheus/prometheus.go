// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks a Prometheus one question, and says in a sentence why there is no answer.
package prometheus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
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

// Server is a Prometheus, or what answers like one.
type Server struct {
	// URL is that of its API, without /api/v1.
	URL string
	// TokenFile has a bearer token; none is sent if it is empty.
	TokenFile string
	// CAFile has the certificates that may have signed the server's; those of the system if it is empty.
	CAFile string
}

const (
	// patience is how long an answer may take. Prometheus itself gives a query up after two minutes by default.
	patience = 150 * time.Second
	// longest is how long an answer may be: some hundred thousand series.
	longest = 64 << 20
)

// Ask evaluates a query at a time. Notes are what the server warns of.
func (s Server) Ask(ctx context.Context, query string, at time.Time) (samples model.Vector, notes []string, err error) {
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
	for _, sample := range samples {
		if value := float64(sample.Value); sample.Histogram != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, nil, fmt.Errorf("cannot read the answer of Prometheus about %v: it is no number", sample)
		}
	}
	for _, warning := range warnings {
		notes = append(notes, "Prometheus warns, so hours may be missing: "+warning)
	}
	return samples, notes, nil
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
	client, err := api.NewClient(api.Config{Address: s.URL, Client: &http.Client{Transport: bounded{transport}, Timeout: patience}})
	if err != nil {
		return nil, fmt.Errorf("cannot ask Prometheus: %w", err)
	}
	return &connection{Client: client, token: token}, nil
}

func (s Server) token(u *url.URL) (string, error) {
	if s.TokenFile == "" {
		return "", nil
	}
	if u.Scheme != "https" && !local(u.Hostname()) {
		return "", fmt.Errorf("the token would be readable on the way to %s: use https, or leave it out", u.Host)
	}
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the token for Prometheus: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}

// local is where kubectl port-forward listens.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s Server) transport() (*http.Transport, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
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
