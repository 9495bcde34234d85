// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestAVerdictChangesAtItsThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		passing          bool
		success, failure int32
		results, want    string // + passes, - fails; the verdict after each
	}{
		"the first success makes ready":         {false, 0, 0, "--+", "--+"},
		"three failures are too many":           {true, 0, 0, "--+---", "+++++-"},
		"one failure is too many if it says so": {true, 1, 1, "+-+", "+-+"},
		"two successes may be needed":           {false, 2, 1, "+-++-", "---+-"},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdict{probe: &corev1.Probe{SuccessThreshold: c.success, FailureThreshold: c.failure}, passing: c.passing}
			got, was := "", c.passing
			for _, result := range c.results {
				if turned := v.observe(result == '+'); turned != (v.passing != was) {
					t.Error("a turn is not told, or one that was none")
				}
				was = v.passing
				got += map[bool]string{true: "+", false: "-"}[v.passing]
			}
			if got != c.want {
				t.Errorf("the verdicts are %s, want %s", got, c.want)
			}
		})
	}
}

func TestProbesCheckTheContainer(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/nowhere", http.StatusFound)
		case r.URL.Path != "/healthz" || r.Header.Get("X-Probe") == "no":
			http.Error(w, "no", http.StatusInternalServerError)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	port := func(s *httptest.Server) int {
		u, _ := url.Parse(s.URL)
		_, text, _ := net.SplitHostPort(u.Host)
		number, _ := strconv.Atoi(text)
		return number
	}
	ports := []corev1.ContainerPort{{Name: "health", ContainerPort: int32(port(plain))}}
	http := func(path string, p intstr.IntOrString, scheme corev1.URIScheme, header string) *corev1.Probe {
		action := &corev1.HTTPGetAction{Path: path, Port: p, Scheme: scheme, HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Probe", Value: header}}}
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: action}}
	}
	tcp := func(p int) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(p)}}}
	}
	for name, c := range map[string]struct {
		probe *corev1.Probe
		want  string
	}{
		"it is well":                            {http("/healthz", intstr.FromInt(port(plain)), "", ""), ""},
		"its port has a name":                   {http("/healthz", intstr.FromString("health"), "", ""), ""},
		"nobody signed its certificate":         {http("/healthz", intstr.FromInt(port(secure)), corev1.URISchemeHTTPS, ""), ""},
		"it sends on":                           {http("/moved", intstr.FromInt(port(plain)), "", ""), ""},
		"it is not well":                        {http("/healthz", intstr.FromInt(port(plain)), "", "no"), "answered 500"},
		"no port has that name":                 {http("/healthz", intstr.FromString("none"), "", ""), "the container has no port none"},
		"it listens":                            {tcp(port(plain)), ""},
		"it does not listen":                    {tcp(1), "refused"},
		"a command is more than this node runs": {&corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}}, "only HTTP and TCP probes"},
	} {
		t.Run(name, func(t *testing.T) {
			check, err := checker(c.probe, "127.0.0.1", ports)
			if err == nil {
				err = check(t.Context())
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Until its first success, a probe ignores its period, which is longer than any test here.
func TestAPodBecomesReadyWithoutDelay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	v := verdict{probe: &corev1.Probe{PeriodSeconds: 1 << 20}, eager: true}
	turns := make(chan bool, 1)
	go v.follow(ctx, func(context.Context) error {
		if asked++; asked < 3 {
			return context.DeadlineExceeded
		}
		return nil
	}, func(passing bool) { turns <- passing })
	if passing := <-turns; !passing || asked != 3 {
		t.Errorf("it was asked %d times and is ready: %v", asked, passing)
	}
}
