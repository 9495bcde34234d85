// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks a Prometheus one question, and says in a sentence why there is no answer.
package prometheus

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
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

// Sample is a value, and the labels that tell it from others.
type Sample struct {
	Labels map[string]string
	Value  float64
}

const (
	// patience is how long an answer may take. Prometheus itself gives a query up after two minutes by default.
	patience = 150 * time.Second
	// longest is how long an answer may be: some hundred thousand series.
	longest = 64 << 20
)

// Ask evaluates a query at a time. Notes are what the server warns of.
func (s Server) Ask(ctx context.Context, query string, at time.Time) (samples []Sample, notes []string, err error) {
	request, err := s.request(ctx, query, at)
	if err != nil {
		return nil, nil, err
	}
	client, err := s.client()
	if err != nil {
		return nil, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot ask Prometheus: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the answer of Prometheus: %w", err)
	}
	return parse(response, body)
}

func (s Server) request(ctx context.Context, query string, at time.Time) (*http.Request, error) {
	u, err := s.api()
	if err != nil {
		return nil, err
	}
	u = u.JoinPath("query")
	u.RawQuery = url.Values{"query": {query}, "time": {strconv.FormatInt(at.Unix(), 10)}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil || s.TokenFile == "" {
		return request, err
	}
	if u.Scheme != "https" && !local(u.Hostname()) {
		return nil, fmt.Errorf("the token would be readable on the way to %s: use https, or leave it out", u.Host)
	}
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the token for Prometheus: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return request, nil
}

func (s Server) api() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is no address of a Prometheus: write it as https://prometheus.example.com, without /api/v1", s.URL)
	}
	return u.JoinPath("api", "v1"), nil
}

// local is where kubectl port-forward listens.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s Server) client() (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if s.CAFile != "" {
		text, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificates of Prometheus: %w", err)
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cannot read the certificates of Prometheus: %s has none in PEM format", s.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, Timeout: patience}, nil
}

// answer is what the API of Prometheus returns, also with an error.
type answer struct {
	Status   string   `json:"status"`
	Kind     string   `json:"errorType"`
	Error    string   `json:"error"`
	Warnings []string `json:"warnings"`
	Data     struct {
		Type   string `json:"resultType"`
		Result []struct {
			Metric map[string]string  `json:"metric"`
			Value  [2]json.RawMessage `json:"value"`
		} `json:"result"`
	} `json:"data"`
}

func parse(response *http.Response, body []byte) (samples []Sample, notes []string, err error) {
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, nil, fmt.Errorf("you may not ask Prometheus (%s): name a file with a valid token, --prometheus-token-file", response.Status)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Status == "" {
		kind := cmp.Or(response.Header.Get("Content-Type"), "something unknown")
		return nil, nil, fmt.Errorf("%s does not answer as a Prometheus, but %s with %s: give the address of its API, without /api/v1",
			response.Request.URL.Host, response.Status, kind)
	}
	if a.Status != "success" {
		return nil, nil, fmt.Errorf("cannot get an answer from Prometheus: %s: %s", cmp.Or(a.Kind, response.Status), cmp.Or(a.Error, "it does not say why"))
	}
	if a.Data.Type != "vector" {
		return nil, nil, fmt.Errorf("cannot read the answer of Prometheus: it has a %q instead of a vector", a.Data.Type)
	}
	for _, r := range a.Data.Result {
		value, err := number(r.Value[1])
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read the answer of Prometheus about %v: %w", r.Metric, err)
		}
		samples = append(samples, Sample{r.Metric, value})
	}
	for _, warning := range a.Warnings {
		notes = append(notes, "Prometheus warns, so hours may be missing: "+warning)
	}
	return samples, notes, nil
}

// number is in quotes, because JSON has no infinity.
func number(text json.RawMessage) (float64, error) {
	var quoted string
	if err := json.Unmarshal(text, &quoted); err != nil {
		return 0, errors.New("there is no value")
	}
	value, err := strconv.ParseFloat(quoted, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("%q is no number", quoted)
	}
	return value, nil
}
