// SPDX-License-Identifier: Apache-2.0

package fakeapiserver

import (
	"net/http"
	"net/url"
	"strings"
)

// Count counts requests by what they ask for, as in "PATCH runs/status".
func Count(requests []string) map[string]int {
	counts := map[string]int{}
	for _, line := range requests {
		verb, path, _ := strings.Cut(line, " ")
		q := parse(&http.Request{URL: &url.URL{Path: path}})
		if verb == http.MethodGet && q.key.Name == "" {
			verb = "LIST"
		}
		what := verb + " " + q.resource
		if q.status {
			what += "/status"
		}
		counts[what]++
	}
	return counts
}
