// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package airgap_test

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// companyAddress is where the registry of the company listens, for the administrator on the host and for the
// node in its own network. Both use no TLS for loopback addresses.
const (
	companyAddress = "127.0.0.1:26692"
	companyFolder  = companyAddress + "/mirror"
	companyUser    = "cluster"
	companyWord    = "company-password"
)

// company is a registry that wants a password, and remembers what was pulled.
type company struct {
	images http.Handler
	mu     sync.Mutex
	// pulled has the references that containerd has pulled.
	pulled map[string]bool
}

// newCompany starts the registry on the host and in the network of a cluster's node.
func newCompany(t *testing.T, cluster *localcluster.Cluster) *company {
	t.Helper()
	c := &company{images: onDisk(t), pulled: map[string]bool{}}
	c.serve(t, func() (net.Listener, error) { return net.Listen("tcp", companyAddress) })
	c.serve(t, func() (net.Listener, error) { return sandbox.ListenIn(cluster, companyAddress) })
	return c
}

func (c *company) serve(t *testing.T, listen func() (net.Listener, error)) {
	t.Helper()
	listener, err := listen()
	if err != nil {
		t.Fatalf("the company's registry cannot listen: %v", err)
	}
	server := &http.Server{Handler: c}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

var manifestPath = regexp.MustCompile(`^/v2/(.+)/manifests/([^/]+)$`)

func (c *company) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != companyUser || password != companyWord {
		w.Header().Set("WWW-Authenticate", `Basic realm="company"`)
		http.Error(w, "log in", http.StatusUnauthorized)
		return
	}
	if asked := manifestPath.FindStringSubmatch(r.URL.Path); asked != nil && strings.HasPrefix(r.UserAgent(), "containerd/") {
		c.mu.Lock()
		c.pulled[companyAddress+"/"+asked[1]+":"+asked[2]] = true
		c.mu.Unlock()
	}
	c.images.ServeHTTP(w, r)
}

// hasGiven reports whether containerd has pulled an image.
func (c *company) hasGiven(reference string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pulled[reference]
}

// credentials is what 'docker login' writes, and what a Secret for the registry has.
func credentials(t *testing.T) []byte {
	t.Helper()
	login := base64.StdEncoding.EncodeToString([]byte(companyUser + ":" + companyWord))
	text, err := json.Marshal(map[string]any{"auths": map[string]any{companyAddress: map[string]string{"auth": login}}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// loggedIn lets a program use the registry.
func loggedIn(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), credentials(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"DOCKER_CONFIG=" + dir}
}
