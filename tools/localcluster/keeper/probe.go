// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// awaitFor polls a probe until it succeeds or times out.
func awaitFor(timeout time.Duration, probe plan.Probe) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return await(ctx, probe)
}

// await polls a probe until it succeeds or the context is done. Then it returns the last
// error.
func await(ctx context.Context, probe plan.Probe) error {
	check, err := checker(probe)
	if err != nil {
		return err
	}
	for {
		err := check()
		if err == nil {
			return nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

func checker(probe plan.Probe) (func() error, error) {
	switch {
	case probe.Socket != "":
		return func() error { return dial(probe.Socket) }, nil
	case probe.URL != "":
		client, err := httpClient(probe)
		if err != nil {
			return nil, err
		}
		return func() error { return ask(client, probe) }, nil
	default:
		return func() error { return nil }, nil
	}
}

func dial(socket string) error {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

func ask(client *http.Client, probe plan.Probe) error {
	request, err := http.NewRequest(cmp.Or(probe.Method, http.MethodGet), probe.URL, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", probe.URL, response.Status)
	}
	return nil
}

func httpClient(probe plan.Probe) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if probe.CA != "" {
		pem, err := os.ReadFile(probe.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New(probe.CA + " has no certificate")
		}
	}
	if probe.Cert != "" {
		pair, err := tls.LoadX509KeyPair(probe.Cert, probe.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	// Each health request makes a new client, which would not reuse connections.
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	return &http.Client{Timeout: 2 * time.Second, Transport: transport}, nil
}
