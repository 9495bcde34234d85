// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// verdict is the result of a probe so far.
type verdict struct {
	probe               *corev1.Probe
	successes, failures int32
	passing             bool
	// eager uses eagerPeriod until the probe passes for the first time.
	eager bool
}

// observe counts a result, and reports whether it changed the verdict.
func (v *verdict) observe(ok bool) (turned bool) {
	if ok {
		v.successes, v.failures = v.successes+1, 0
	} else {
		v.successes, v.failures = 0, v.failures+1
	}
	was := v.passing
	switch {
	case v.successes >= max(1, v.probe.SuccessThreshold):
		v.passing = true
	case v.failures >= cmp.Or(v.probe.FailureThreshold, 3):
		v.passing = false
	}
	return v.passing != was
}

// eagerPeriod is the period until a pod is ready for the first time: installing the platform
// waits for it.
const eagerPeriod = 250 * time.Millisecond

// follow probes until ctx is done, and reports each change.
func (v *verdict) follow(ctx context.Context, check func(context.Context) error, report func(passing bool)) {
	wait := time.Duration(v.probe.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		attempt, cancel := context.WithTimeout(ctx, seconds(v.probe.TimeoutSeconds, 1))
		err := check(attempt)
		cancel()
		if v.observe(err == nil) && ctx.Err() == nil {
			report(v.passing)
		}
		v.eager = v.eager && !v.passing
		if wait = seconds(v.probe.PeriodSeconds, 10); v.eager {
			wait = eagerPeriod
		}
	}
}

func seconds(count, otherwise int32) time.Duration {
	return time.Duration(cmp.Or(count, otherwise)) * time.Second
}

// checker returns the check of a probe for a pod's address.
func checker(p *corev1.Probe, ip string, ports []corev1.ContainerPort) (func(context.Context) error, error) {
	switch {
	case p.HTTPGet != nil:
		port, err := portNumber(p.HTTPGet.Port, ports)
		return func(ctx context.Context) error { return get(ctx, p.HTTPGet, net.JoinHostPort(ip, port)) }, err
	case p.TCPSocket != nil:
		port, err := portNumber(p.TCPSocket.Port, ports)
		return func(ctx context.Context) error { return dial(ctx, net.JoinHostPort(ip, port)) }, err
	}
	return nil, errors.New("this node supports only HTTP and TCP probes")
}

func portNumber(port intstr.IntOrString, ports []corev1.ContainerPort) (string, error) {
	if port.Type == intstr.Int {
		return strconv.Itoa(port.IntValue()), nil
	}
	for _, p := range ports {
		if p.Name == port.StrVal {
			return strconv.Itoa(int(p.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("the container has no port %s", port.StrVal)
}

func dial(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// probing is a client that trusts every certificate, like a kubelet.
var probing = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}

func get(ctx context.Context, action *corev1.HTTPGetAction, host string) error {
	scheme := "http"
	if action.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	to := url.URL{Scheme: scheme, Host: host, Path: action.Path}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return err
	}
	for _, header := range action.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
	}
	response, err := probing.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("%s answered %s", to.String(), response.Status)
	}
	return nil
}

// The probes of a container.
const (
	readiness = "readiness"
	liveness  = "liveness"
)

// turn is a change of a probe's verdict.
type turn struct {
	of      string
	passing bool
}

// probe runs a container's probes until ctx is done. A missing probe passes.
func (w *worker) probe(ctx context.Context) <-chan turn {
	turns := make(chan turn)
	c := w.pod.Spec.Containers[0]
	follow := func(of string, p *corev1.Probe, v verdict) {
		report := func(passing bool) {
			select {
			case turns <- turn{of, passing}:
			case <-ctx.Done():
			}
		}
		if p == nil {
			report(true)
			return
		}
		check, err := checker(p, w.state.ip, c.Ports)
		if err != nil {
			check = func(context.Context) error { return err }
		}
		v.probe = p
		v.follow(ctx, check, report)
	}
	go follow(readiness, c.ReadinessProbe, verdict{eager: true})
	go follow(liveness, c.LivenessProbe, verdict{passing: true})
	return turns
}
