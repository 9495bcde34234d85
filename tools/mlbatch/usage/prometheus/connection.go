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
	token string
	last  *http.Response
}

// Do sends one request. The token is in its header and not in the transport, because then no redirect takes it to
// another host.
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

// bounded reads no more of an answer than the longest there may be, because the address may be that of anything.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, longest)
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
		return fmt.Errorf("you may not ask Prometheus (%s): name a file with a valid token, --prometheus-token-file", c.last.Status)
	}
	if kind, reason, is := refusal(err); is {
		return fmt.Errorf("cannot get an answer from Prometheus: %s: %s", cmp.Or(kind, c.last.Status), cmp.Or(reason, "it does not say why"))
	}
	return fmt.Errorf("%s does not answer as a Prometheus, but %s with %s: give the address of its API, without /api/v1",
		c.last.Request.URL.Host, c.last.Status, cmp.Or(c.last.Header.Get("Content-Type"), "something unknown"))
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
