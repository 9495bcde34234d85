// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfig writes one with a cluster, a user, and the context c.
func kubeconfig(t *testing.T, cluster, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{clusters: [{name: c, cluster: {%s}}], users: [{name: u, user: {%s}}], contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c}", cluster, user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// server answers every request in the same way.
func server(t *testing.T, status int, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// trusted has the address and the certificate of a server.
func trusted(s *httptest.Server) string {
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return "server: \"" + s.URL + "\", certificate-authority-data: " + base64.StdEncoding.EncodeToString(certificate)
}

func TestAClusterThatCannotBeUsedIsToldInOneSentence(t *testing.T) {
	refuses := server(t, http.StatusUnauthorized, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}`)
	page, nothing := server(t, http.StatusOK, "<html></html>"), server(t, http.StatusNotFound, "404 page not found")
	for name, c := range map[string]struct{ cluster, user, context, want string }{
		"a context that is not there": {"server: \"http://127.0.0.1:1\"", "", "prod",
			`cannot find the cluster: the kubeconfig has no context "prod": choose one of c`},
		"credentials that have expired": {trusted(refuses), "token: old", "",
			"the cluster at HOST does not accept your credentials: log in again, or choose another --context"},
		"a certificate of an authority that nobody trusts": {"server: \"" + refuses.URL + "\"", "", "",
			"cannot trust the cluster at HOST: correct certificate-authority in the kubeconfig, or get a new kubeconfig: x509: certificate signed by unknown authority"},
		"a certificate for another name": {trusted(refuses) + ", tls-server-name: elsewhere.invalid", "", "",
			"cannot trust the cluster at HOST: correct server in the kubeconfig, or set tls-server-name there: x509: certificate is valid for "},
		"a program for logging in that is not installed": {trusted(refuses), "exec: {apiVersion: client.authentication.k8s.io/v1, command: cloud-login, interactiveMode: Never}", "",
			"cannot log in to the cluster at HOST: the kubeconfig needs the program cloud-login: install it, or choose another --context"},
		"a web page": {trusted(page), "", "",
			"what answers at HOST is not the API server of Kubernetes: correct server in the kubeconfig, or choose another --context"},
		"another web server": {trusted(nothing), "", "",
			"what answers at HOST is not the API server of Kubernetes: correct server in the kubeconfig, or choose another --context"},
		"nobody": {"server: \"http://127.0.0.1:1\"", "", "", "cannot reach the cluster at HOST: check --kubeconfig and --context: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Cluster{Kubeconfig: kubeconfig(t, c.cluster, c.user), Context: c.context}.Connect()
			if err == nil {
				t.Fatal("it connects")
			}
			text := err.Error()
			for _, s := range []string{refuses.URL, page.URL, nothing.URL, "http://127.0.0.1:1"} {
				text = strings.Replace(text, s, "HOST", 1)
			}
			if !strings.HasPrefix(text, c.want) || strings.Contains(text, "\n") {
				t.Errorf("got %s", text)
			}
		})
	}
}
