// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package airgap_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/mlbatch/mlbatch/tools/localcluster/pki"
)

// publicRegistries have the images of the platform. docker.io is index.docker.io to clients.
var publicRegistries = []string{"ghcr.io", "index.docker.io", "quay.io", "registry.k8s.io"}

// internet is one server in the place of all public registries, and the proxy that leads to it.
type internet struct {
	proxy *httptest.Server
	dir   string
	mu    sync.Mutex
	// connected are the hosts to which the proxy was asked to connect.
	connected []string
}

func newInternet(t *testing.T) *internet {
	t.Helper()
	i := &internet{dir: t.TempDir()}
	authority, err := pki.NewAuthority(i.dir, "ca")
	if err == nil {
		err = authority.Issue(pki.Leaf{File: "public", Hosts: publicRegistries})
	}
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(i.dir, "public.crt"), filepath.Join(i.dir, "public.key"))
	if err != nil {
		t.Fatal(err)
	}
	registries := httptest.NewUnstartedServer(onDisk(t))
	registries.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	registries.StartTLS()
	t.Cleanup(registries.Close)
	i.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.connect(t, w, r, registries.Listener.Addr().String())
	}))
	t.Cleanup(i.proxy.Close)
	return i
}

// onDisk is a registry whose images are in files, because they are large.
func onDisk(t *testing.T) http.Handler {
	return registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir())))
}

// connect leads a client of the proxy to the one server, whatever host it wants.
func (i *internet) connect(t *testing.T, w http.ResponseWriter, r *http.Request, server string) {
	host, _, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil {
		http.Error(w, "only TLS passes", http.StatusForbidden)
		return
	}
	i.mu.Lock()
	i.connected = append(i.connected, host)
	i.mu.Unlock()
	inner, err := net.Dial("tcp", server)
	if err != nil {
		t.Errorf("the public registries do not answer: %v", err)
		return
	}
	defer inner.Close()
	w.WriteHeader(http.StatusOK)
	outer, early, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Errorf("the proxy cannot connect to %s: %v", host, err)
		return
	}
	defer outer.Close()
	go func() { _, _ = io.Copy(inner, early) }() // it may have the client's first byte
	_, _ = io.Copy(outer, inner)
}

// hosts returns the registries that were asked since the last call.
func (i *internet) hosts() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked := slices.Compact(slices.Sorted(slices.Values(i.connected)))
	i.connected = nil
	return asked
}

// environment lets a program reach the internet.
func (i *internet) environment() []string {
	return []string{"HTTPS_PROXY=" + i.proxy.URL, "NO_PROXY=", "no_proxy=", "SSL_CERT_FILE=" + filepath.Join(i.dir, "ca.crt")}
}

func (i *internet) transport(t *testing.T) http.RoundTripper {
	t.Helper()
	proxy, err := url.Parse(i.proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(i.dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}}
}

// publish pushes an image to a public registry.
func (i *internet) publish(t *testing.T, reference string, image v1.Image) {
	t.Helper()
	to, err := name.ParseReference(reference, name.StrictValidation)
	if err == nil {
		err = remote.Write(to, image, remote.WithTransport(i.transport(t)))
	}
	if err != nil {
		t.Fatalf("cannot publish %s: %v", reference, err)
	}
}

// imagesIn returns the images of an OCI archive by their references.
func imagesIn(t *testing.T, archive string) map[string]v1.Image {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "--extract", "--file", archive, "--directory", dir).CombinedOutput(); err != nil {
		t.Fatalf("cannot unpack %s: %v\n%s", archive, err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.Image{}
	for _, m := range manifest.Manifests {
		if all[m.Annotations["io.containerd.image.name"]], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
