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
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/mlbatch/mlbatch/controller/internal/config"
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

// server is a webhook server whose readiness check returns an error, or nil.
type server struct {
	webhook.Server
	problem error
}

func (s server) StartedChecker() healthz.Checker {
	return func(*http.Request) error { return s.problem }
}

func TestCheckAsksTheServerOnlyOnceThereIsACertificate(t *testing.T) {
	down := errors.New("the server does not answer")
	for name, tc := range map[string]struct {
		certified bool
		server    error
		asked     int
		want      bool
	}{
		"not ready without a certificate":               {false, nil, 0, false},
		"not ready while the server does not answer":    {true, down, 1, false},
		"ready with a certificate and a server that is": {true, nil, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			ready, asked := make(chan struct{}), 0
			if tc.certified {
				close(ready)
			}
			err := Check(ready, func() webhook.Server { asked++; return server{problem: tc.server} })(nil)
			if (err == nil) != tc.want || asked != tc.asked {
				t.Errorf("asked the server %d times, error %v", asked, err)
			}
		})
	}
}

func TestNothingIsAddedWhereCertManagerKeepsTheCertificate(t *testing.T) {
	ready, err := Setup(nil, config.CertManagement{CertManager: true})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ready:
	default:
		t.Error("the webhooks would wait for a certificate that is never created")
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
