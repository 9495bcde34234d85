// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/pki"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestAwaitURL(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sick" || asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	if err := awaitFor(time.Minute, plan.Probe{URL: server.URL + "/late"}); err != nil {
		t.Errorf("a server that answers 200 at the third time is not ready: %v", err)
	}
	err := awaitFor(time.Millisecond, plan.Probe{URL: server.URL + "/sick"})
	if err == nil || !strings.Contains(err.Error(), "/sick answered 503 Service Unavailable") {
		t.Errorf("a server that answers 503 gives %v", err)
	}
}

func TestAwaitSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := awaitFor(time.Millisecond, plan.Probe{Socket: path}); err == nil {
		t.Error("a socket that does not exist is ready")
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := awaitFor(time.Minute, plan.Probe{Socket: path}); err != nil {
		t.Errorf("a socket that accepts is not ready: %v", err)
	}
}

func TestAwaitNothing(t *testing.T) {
	if err := awaitFor(0, plan.Probe{}); err != nil {
		t.Errorf("a program without a probe is not ready at once: %v", err)
	}
}

func TestAProbeUsesItsClientCertificate(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []pki.Leaf{{File: "server", CommonName: "server", Hosts: []string{"127.0.0.1"}}, {File: "admin", CommonName: "admin"}} {
		if err := ca.Issue(leaf); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	probe := plan.Probe{URL: serveTLS(t, file), CA: file("ca.crt"), Cert: file("admin.crt"), Key: file("admin.key")}
	if err := awaitFor(time.Minute, probe); err != nil {
		t.Errorf("a probe with a certificate is refused: %v", err)
	}
	anonymous := probe
	anonymous.Cert = ""
	if err := awaitFor(time.Millisecond, anonymous); err == nil {
		t.Error("a probe without a certificate is let in")
	}
	trusting := probe
	trusting.CA = ""
	if err := awaitFor(time.Millisecond, trusting); err == nil {
		t.Error("a probe trusts a server of a strange authority")
	}
	if err := os.WriteFile(file("empty.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := awaitFor(time.Minute, plan.Probe{URL: probe.URL, CA: file("empty.crt")}); err == nil || !strings.Contains(err.Error(), "empty.crt has no certificate") {
		t.Errorf("a file without a certificate gives %v", err)
	}
}

// serveTLS serves with the server certificate to clients with one of the CA.
func serveTLS(t *testing.T, file func(string) string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(file("server.crt"), file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(cert)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the test makes it refuse clients
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}
