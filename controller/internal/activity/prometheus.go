// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/prometheus"
)

// longest is how many bytes of an answer are read: some thousand series.
const longest = 4 << 20

// asker asks one Prometheus one query.
type asker struct {
	server prometheus.Server
	query  string
}

func newPrometheus(c config.DeviceActivity) (*asker, error) {
	server := prometheus.Server{URL: c.PrometheusURL, TokenFile: c.TokenFile, CAFile: c.CAFile, Longest: longest}
	if err := server.Check(); err != nil {
		return nil, fmt.Errorf("cannot use appwrapper.deviceActivity: %w", err)
	}
	return &asker{server: server, query: c.Query}, nil
}

// ask evaluates the query for these pods, all in one. Series above 0 are of pods that compute. An answer that may lack
// series is none.
func (a *asker) ask(ctx context.Context, namespace string, pods []string) (lifecycle.Activity, error) {
	series, warnings, err := a.server.Ask(ctx, about(a.query, namespace, pods), time.Time{})
	if err != nil {
		return "", fmt.Errorf("pods in %s: %w", namespace, err)
	}
	for _, s := range series {
		if s.Value > 0 { // not so for one that is not a number
			return lifecycle.ActivityComputes, nil
		}
	}
	if len(warnings) > 0 {
		return "", fmt.Errorf("pods in %s: Prometheus warns, so series may be missing: %s", namespace, strings.Join(warnings, "; "))
	}
	if len(series) == 0 {
		return lifecycle.ActivityUnknown, nil
	}
	return lifecycle.ActivityRests, nil
}

// about is the query for these pods. The only character of a pod's name that means something else in a regular
// expression is the dot.
func about(query, namespace string, pods []string) string {
	expression := strings.ReplaceAll(strings.Join(pods, "|"), ".", "[.]")
	return strings.NewReplacer(config.NamespacePlaceholder, namespace, config.PodsPlaceholder, expression).Replace(query)
}
