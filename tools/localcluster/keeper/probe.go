// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// await polls a probe until it is satisfied or the time is up.
func await(probe plan.Probe, timeout time.Duration) error {
	check, err := checker(probe)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
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
		return func() error { return get(client, probe.URL) }, nil
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

func get(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
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
			return nil, errors.New(probe.CA + " holds no certificate")
		}
	}
	if probe.Cert != "" {
		pair, err := tls.LoadX509KeyPair(probe.Cert, probe.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: config}}, nil
}
