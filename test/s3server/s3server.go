// SPDX-License-Identifier: Apache-2.0

// Package s3server starts a real S3 server for a test. It is the one that the end-to-end tests
// have on their cluster.
package s3server

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/s3"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// Keys of the account that may do everything.
const (
	AccessKeyID     = "admin"
	SecretAccessKey = "only for tests" //nolint:gosec // It protects nothing.
)

// Bucket exists from the beginning.
const Bucket = "pictures"

// Server listens on loopback until the test ends.
type Server struct {
	// Endpoint is its URL.
	Endpoint string
	// Client has all rights.
	Client *minio.Client
}

// Start starts a server that has one bucket, without objects.
func Start(t *testing.T) Server {
	t.Helper()
	address := freeAddress(t)
	data := filepath.Join(t.TempDir(), "buckets")
	if err := os.MkdirAll(filepath.Join(data, Bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	//nolint:gosec // The program is built from a pinned module.
	server := exec.CommandContext(t.Context(), program(t), "--quiet", "--port", address, "posix", data)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKeyID, "ROOT_SECRET_KEY="+SecretAccessKey)
	server.Stdout, server.Stderr = t.Output(), t.Output()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended it
	awaitListener(t, address)
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(AccessKeyID, SecretAccessKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	return Server{Endpoint: "http://" + address, Client: client}
}

// program builds the server, once for all tests of a user.
func program(t *testing.T) string {
	t.Helper()
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := components.UserCache(checkout)
	if err != nil {
		t.Fatal(err)
	}
	bins, err := cache.Get(t.Context(), t.Output(), s3.Component)
	if err != nil {
		t.Fatal(err)
	}
	return bins[s3.Program]
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func awaitListener(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(patience.For(patience.Short)); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			return
		}
	}
	t.Fatal("the S3 server does not listen")
}
