// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestHealthIsServed(t *testing.T) {
	well := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer well.Close()
	ill := httptest.NewServer(http.NotFoundHandler())
	defer ill.Close()
	dir := t.TempDir()
	if err := plan.Write(dir, plan.File, plan.Plan{Programs: []plan.Program{
		{Name: "well", Ready: plan.Probe{URL: well.URL}},
		{Name: "ill", Ready: plan.Probe{URL: ill.URL}},
		{Name: "deaf", Ready: plan.Probe{Socket: filepath.Join(dir, "absent.sock")}},
		{Name: "without-a-probe"},
		{Name: "without-its-certificate", Ready: plan.Probe{URL: "https://127.0.0.1:1", CA: filepath.Join(dir, "absent.crt")}},
	}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the socket of an earlier keeper is replaced
		if err := serveHealth(plan.Plan{Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.Dial("unix", filepath.Join(dir, plan.HealthSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var got plan.Health
	if err := json.NewDecoder(conn).Decode(&got); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{
		"well": "", "without-a-probe": "", "ill": "404 Not Found", "deaf": "no such file", "without-its-certificate": "absent.crt",
	} {
		said, asked := got[program]
		if !asked || (want == "") != (said == "") || !strings.Contains(said, want) {
			t.Errorf("%s: %q (asked: %t), want %q", program, said, asked, want)
		}
	}
}
