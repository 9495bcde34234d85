// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
)

// The broker trusts the authority that the Secret of its DataSet names, as whoever copies does.
func TestABrokerTrustsTheAuthorityOfItsBucket(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for given, trusted := range map[string]bool{authority: true, "": false} {
		t.Setenv(authorityVariable, given)
		objects, err := brokering{bucket: taskstore.Access{Endpoint: server.URL, Name: "tasks", Region: "here"}}.objects()
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = objects.Open(t.Context(), "a")
		if trusted != errors.Is(err, fs.ErrNotExist) || trusted == strings.Contains(err.Error(), "x509") {
			t.Errorf("trusted is %v, and the answer %v", trusted, err)
		}
	}
	t.Setenv(authorityVariable, "none")
	if _, err := (brokering{bucket: taskstore.Access{Endpoint: server.URL, Name: "tasks"}}).objects(); err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("what is no certificate says %v", err)
	}
}
