// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// connection sends the token, and remembers the last response: errors of the library do not say what has answered.
type connection struct {
	api.Client
	server Server
	token  string
	last   *http.Response
}

// Do sends one request. The token is in its header and not in the transport, which would add it to whatever a redirect
// leads to.
func (c *connection) Do(ctx context.Context, request *http.Request) (*http.Response, []byte, error) {
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, body, err := c.Client.Do(ctx, request)
	if err == nil {
		c.last = response
	}
	return response, body, err
}

// follow keeps the token with its server: Go would send it to other ports and subdomains of the host, and without TLS.
func (c *connection) follow(request *http.Request, before []*http.Request) error {
	to, from := request.URL, before[0].URL
	if c.token != "" && (to.Scheme != from.Scheme || to.Host != from.Host) {
		return fmt.Errorf("the token is only for %s, which redirects to %s: give the address of the server itself", from.Host, to.Redacted())
	}
	if len(before) > 5 {
		return errors.New("there is no end of redirects: give the address of the server itself")
	}
	return nil
}

// bounded reads no more of an answer than the longest there may be, because the address may be that of anything.
type bounded struct {
	http.RoundTripper
	longest int64
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, b.longest)
	}
	return response, err
}

// explain says what is wrong and what to do, as far as the answer or its absence tells.
func (c *connection) explain(err error) error {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return fmt.Errorf("cannot read the answer of Prometheus: it is longer than %d MiB; check the address", tooLong.Limit>>20)
	}
	if c.last == nil {
		return fmt.Errorf("cannot ask Prometheus: %w", err)
	}
	switch c.last.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return c.refused()
	}
	if kind, reason, is := refusal(err); is {
		return fmt.Errorf("cannot get an answer from Prometheus: %s: %s", cmp.Or(kind, c.last.Status), cmp.Or(reason, "it does not say why"))
	}
	return fmt.Errorf("%s does not answer as a Prometheus, but %s with %s: give the address of its API, without /api/v1",
		c.last.Request.URL.Host, c.last.Status, cmp.Or(c.last.Header.Get("Content-Type"), "something unknown"))
}

func (c *connection) refused() error {
	if c.token == "" {
		return fmt.Errorf("you may not ask Prometheus without a token (%s): name a file that has one", c.last.Status)
	}
	return fmt.Errorf("you may not ask Prometheus with the token in %s (%s): it is not valid, or its account lacks a right",
		c.server.TokenFile, c.last.Status)
}

// refusal is what Prometheus itself says of a query. The library does not read it if the status is neither 400 nor
// 422, as of a query that takes too long.
func refusal(err error) (kind, reason string, is bool) {
	var said *prometheusv1.Error
	if !errors.As(err, &said) {
		return "", "", false
	}
	switch said.Type {
	case prometheusv1.ErrBadResponse:
		return "", "", false
	case prometheusv1.ErrClient, prometheusv1.ErrServer:
		var a struct{ Status, ErrorType, Error string }
		err := json.Unmarshal([]byte(said.Detail), &a)
		return a.ErrorType, a.Error, err == nil && a.Status == "error"
	}
	return string(said.Type), said.Msg, true
}
