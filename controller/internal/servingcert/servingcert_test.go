// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

func TestWriteCopiesOnlyWholePairs(t *testing.T) {
	for name, tc := range map[string]struct {
		secret map[string][]byte
		want   map[string]string
	}{
		"nothing from a Secret that is still empty": {nil, map[string]string{}},
		"nothing from half a pair":                  {map[string][]byte{"tls.crt": []byte("c")}, map[string]string{}},
		"the pair and nothing else": {
			map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k"), "ca.key": []byte("secret")},
			map[string]string{"tls.crt": "c", "tls.key": "k"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			directory := filepath.Join(t.TempDir(), "certs")
			if err := write(directory, tc.secret); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, contents(t, directory)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWriteReplacesAnOlderPair(t *testing.T) {
	directory := t.TempDir()
	for _, generation := range []string{"old", "new"} {
		pair := map[string][]byte{"tls.crt": []byte(generation), "tls.key": []byte(generation)}
		if err := write(directory, pair); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"tls.crt": "new", "tls.key": "new"}
	if diff := cmp.Diff(want, contents(t, directory)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func contents(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(data)
	}
	return files
}

func TestCheckWaitsForTheCertificateAndThenAsksTheServer(t *testing.T) {
	ready := make(chan struct{})
	check := Check(ready, healthz.Ping)
	if check(nil) == nil {
		t.Error("ready before the certificate")
	}
	close(ready)
	if err := check(nil); err != nil {
		t.Errorf("not ready with a certificate and a server that answers: %v", err)
	}
	down := errors.New("the server does not answer")
	if err := Check(ready, func(*http.Request) error { return down })(nil); !errors.Is(err, down) {
		t.Errorf("got %v, want the server's own complaint", err)
	}
}

func TestAfterRunsOnlyWhenReady(t *testing.T) {
	ran := 0
	then := func() error { ran++; return nil }
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := After(make(chan struct{}), then).Start(stopped); err != nil || ran != 0 {
		t.Errorf("ran %d times without being ready, error %v", ran, err)
	}
	ready := make(chan struct{})
	close(ready)
	if err := After(ready, then).Start(t.Context()); err != nil || ran != 1 {
		t.Errorf("ran %d times, want once, error %v", ran, err)
	}
}
