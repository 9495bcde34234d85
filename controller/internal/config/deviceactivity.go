// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DeviceActivity is a query that tells whether devices compute. It holds back what another sign asks for: the reset
// of work that hangs, and the end of work that is idle.
type DeviceActivity struct {
	// PrometheusURL is where to ask, without /api/v1. Empty: nobody is asked.
	PrometheusURL string `json:"prometheusURL"`
	// TokenFile has a bearer token for it. Empty: none is sent.
	TokenFile string `json:"tokenFile"`
	// CAFile has the certificates that may have signed its own. Empty: those that the image trusts.
	CAFile string `json:"caFile"`
	// Query returns a series above 0 if a pod computes.
	Query string `json:"query"`
	// Timeout is how long an answer may take.
	Timeout Duration `json:"timeout"`
}

// What a query must contain. It is replaced by the namespace of an AppWrapper, and by a regular expression that
// matches the names of its running pods.
const (
	NamespacePlaceholder = "$namespace"
	PodsPlaceholder      = "$pods"
)

func defaultDeviceActivity() DeviceActivity {
	return DeviceActivity{Timeout: Duration{5 * time.Second}}
}

// A hang is to be found within a minute after the grace, also when Prometheus does not answer.
const longestTimeout = 20 * time.Second

func (d DeviceActivity) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if d.Timeout.Duration < time.Second || d.Timeout.Duration > longestTimeout {
		problems = append(problems, field.Invalid(path.Child("timeout"), d.Timeout.String(), "must be from 1s to 20s"))
	}
	if d == (DeviceActivity{Timeout: d.Timeout}) {
		return problems
	}
	if !isAddress(d.PrometheusURL) {
		problems = append(problems, field.Invalid(path.Child("prometheusURL"), d.PrometheusURL,
			"must be an address such as http://prometheus.monitoring:9090, without /api/v1"))
	}
	problems = append(problems, d.validateFile(path.Child("tokenFile"), d.TokenFile)...)
	problems = append(problems, d.validateFile(path.Child("caFile"), d.CAFile)...)
	for _, placeholder := range []string{NamespacePlaceholder, PodsPlaceholder} {
		if !strings.Contains(d.Query, placeholder) {
			problems = append(problems, field.Invalid(path.Child("query"), d.Query, "must select the pods: "+placeholder+" is missing"))
		}
	}
	return problems
}

func (d DeviceActivity) validateFile(path *field.Path, file string) field.ErrorList {
	var problems field.ErrorList
	if file != "" && !filepath.IsAbs(file) {
		problems = append(problems, field.Invalid(path, file, "must be the path of a file in the controller's pod, such as /var/run/secrets/prometheus/token"))
	}
	if file != "" && !strings.HasPrefix(d.PrometheusURL, "https://") {
		problems = append(problems, field.Invalid(path, file, "needs a prometheusURL with https"))
	}
	return problems
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.RawQuery == ""
}
