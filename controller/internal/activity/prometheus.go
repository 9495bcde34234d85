// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// longest is how much of an answer is read: some thousand series.
const longest = 4 << 20

// asker asks one Prometheus one query.
type asker struct {
	api   prometheus.API
	query string
}

func newPrometheus(url, query string) (*asker, error) {
	client, err := api.NewClient(api.Config{Address: url, RoundTripper: bounded{api.DefaultRoundTripper}})
	if err != nil {
		return nil, fmt.Errorf("cannot use the address of Prometheus: %w", err)
	}
	return &asker{api: prometheus.NewAPI(client), query: query}, nil
}

// ask evaluates the query for these pods, all in one. Series above 0 are of pods that compute.
func (a *asker) ask(ctx context.Context, namespace string, pods []string) (lifecycle.Activity, error) {
	answer, _, err := a.api.Query(ctx, about(a.query, namespace, pods), time.Time{})
	if err != nil {
		return "", fmt.Errorf("cannot ask Prometheus about pods in %s: %w", namespace, err)
	}
	series, isVector := answer.(model.Vector)
	if !isVector {
		return "", fmt.Errorf("the query about pods in %s must return an instant vector, and returns %v", namespace, answer.Type())
	}
	if len(series) == 0 {
		return lifecycle.ActivityUnknown, nil
	}
	for _, s := range series {
		if s.Value > 0 { // not so for one that is not a number
			return lifecycle.ActivityComputes, nil
		}
	}
	return lifecycle.ActivityRests, nil
}

// about is the query for these pods. The only character of a pod's name that means something else in a regular
// expression is the dot.
func about(query, namespace string, pods []string) string {
	expression := strings.ReplaceAll(strings.Join(pods, "|"), ".", "[.]")
	return strings.NewReplacer(config.NamespacePlaceholder, namespace, config.PodsPlaceholder, expression).Replace(query)
}

// bounded reads no more of an answer than the longest there can be: the address may be that of anything.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, longest)
	}
	return response, err
}
