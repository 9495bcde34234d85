// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// vector is an answer with these values.
func vector(values ...string) string {
	var series []string
	for _, v := range values {
		series = append(series, `{"metric": {"pod": "a"}, "value": [1700000000, "`+v+`"]}`)
	}
	return `{"status": "success", "data": {"resultType": "vector", "result": [` + strings.Join(series, ",") + `]}}`
}

// partly is such an answer of a Prometheus that does not have all data.
func partly(values ...string) string {
	return strings.Replace(vector(values...), `"data"`, `"warnings": ["store b is away"], "data"`, 1)
}

// answering is a Prometheus that gives this answer to everything.
func answering(t *testing.T, status int, body string) *asker {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return asking(t, server.URL)
}

func asking(t *testing.T, url string) *asker {
	t.Helper()
	a, err := newPrometheus(config.DeviceActivity{PrometheusURL: url, Query: `power{namespace="$namespace", pod=~"$pods"}`})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPodsComputeIfASeriesIsAboveZero(t *testing.T) {
	for sentence, tc := range map[string]struct {
		status int
		body   string
		want   lifecycle.Activity
		says   string // the error
	}{
		"one of them does":          {200, vector("0", "97.5"), lifecycle.ActivityComputes, ""},
		"none of them does":         {200, vector("0", "0"), lifecycle.ActivityRests, ""},
		"less than nothing":         {200, vector("-1"), lifecycle.ActivityRests, ""},
		"no number":                 {200, vector("NaN"), lifecycle.ActivityRests, ""},
		"no series":                 {200, vector(), lifecycle.ActivityUnknown, ""},
		"a scalar":                  {200, `{"status": "success", "data": {"resultType": "scalar", "result": [1700000000, "1"]}}`, "", `has a "scalar" instead of a vector`},
		"a query that is wrong":     {400, `{"status": "error", "errorType": "bad_data", "error": "parse error at char 7"}`, "", "parse error at char 7"},
		"an overloaded Prometheus":  {503, `{"status": "error", "errorType": "timeout", "error": "query timed out"}`, "", "timeout: query timed out"},
		"one that needs a password": {401, "Unauthorized", "", "pods in team: you may not ask Prometheus without a token (401 Unauthorized)"},
		"a login page":              {200, "<html>", "", "does not answer as a Prometheus"},
		"half of an answer":         {200, vector("97.5")[:60], "", "does not answer as a Prometheus"},
		"a part, and it computes":   {200, partly("97.5"), lifecycle.ActivityComputes, ""},
		"a part, which rests":       {200, partly("0"), "", "pods in team: Prometheus warns, so series may be missing: store b is away"},
		"a part, which is nothing":  {200, partly(), "", "store b is away"},
		"an answer without an end":  {200, strings.Repeat("x", longest+1), "", "it is longer than 4 MiB"},
	} {
		t.Run(sentence, func(t *testing.T) {
			says, err := answering(t, tc.status, tc.body).ask(t.Context(), "team", []string{"a"})
			if says != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("it says %q, %v; want %q, %q", says, err, tc.want, tc.says)
			}
		})
	}
}

func TestPrometheusThatDoesNotAnswerIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if says, err := asking(t, server.URL).ask(ctx, "team", []string{"a"}); err == nil {
		t.Errorf("it says %q", says)
	}
}

// One query is about all pods, and only about them.
func TestTheQueryNamesThePods(t *testing.T) {
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Path+": "+r.FormValue("query"))
		_, _ = w.Write([]byte(vector("1")))
	}))
	defer server.Close()
	if _, err := asking(t, server.URL+"/prometheus/").ask(t.Context(), "team", []string{"job-0", "job-1.b"}); err != nil {
		t.Fatal(err)
	}
	want := `/prometheus/api/v1/query: power{namespace="team", pod=~"job-0|job-1[.]b"}`
	if len(queries) != 1 || queries[0] != want {
		t.Errorf("queries %q, want %q", queries, want)
	}
}

func TestTheConfigurationSaysWhetherAnybodyIsAsked(t *testing.T) {
	c := config.Default().AppWrapper.DeviceActivity
	if signs, err := of(c); signs != nil || err != nil {
		t.Errorf("by default somebody is asked, or %v", err)
	}
	c.PrometheusURL = "https://prometheus"
	if signs, err := of(c); signs == nil || err != nil {
		t.Errorf("nobody is asked, because of %v", err)
	}
	for _, change := range []func(*config.DeviceActivity){
		func(c *config.DeviceActivity) { c.PrometheusURL = "http://%zz" },
		func(c *config.DeviceActivity) { c.TokenFile = "/not/there" },
		func(c *config.DeviceActivity) { c.CAFile = "/not/there" },
	} {
		wrong := c
		change(&wrong)
		if _, err := of(wrong); err == nil || !strings.Contains(err.Error(), "cannot use appwrapper.deviceActivity: ") {
			t.Errorf("got %v of %+v", err, wrong)
		}
	}
}
