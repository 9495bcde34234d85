// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/mlbatch/mlbatch/controller/prometheus"
)

const good = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"blue"},"value":[1,"12.5"]}]},"infos":["any"]}`

var samples = model.Vector{{Metric: model.Metric{"namespace": "blue"}, Value: 12.5, Timestamp: 1000}}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAnAnswer(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.FormValue("query")+" "+r.FormValue("time")+" "+r.Header.Get("Authorization"))
		fmt.Fprint(w, good)
	}))
	defer server.Close()
	for _, s := range []prometheus.Server{{URL: server.URL}, {URL: server.URL + "/below/"}, {URL: server.URL, TokenFile: file(t, "secret\n")}} {
		got, notes, err := s.Ask(t.Context(), "sum(a{})", time.Unix(100, 0))
		if diff := cmp.Diff(samples, got); err != nil || len(notes) > 0 || diff != "" {
			t.Errorf("got %v, %q\n%s", err, notes, diff)
		}
	}
	want := []string{"POST /api/v1/query sum(a{}) 100 ", "POST /below/api/v1/query sum(a{}) 100 ", "POST /api/v1/query sum(a{}) 100 Bearer secret"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWarningsComeWithTheAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Replace(good, `"infos"`, `"warnings":["store b is away"],"infos"`, 1))
	}))
	defer server.Close()
	got, warnings, err := prometheus.Server{URL: server.URL}.Ask(t.Context(), "a", time.Unix(100, 0))
	if err != nil || len(got) != 1 || !cmp.Equal(warnings, []string{"store b is away"}) {
		t.Errorf("got %v, %q, %v", got, warnings, err)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for sentence, row := range map[string]struct {
		code       int
		kind, body string
		says       string
	}{
		"a query that is wrong":      {400, "application/json", `{"status":"error","errorType":"bad_data","error":"parse error"}`, "cannot get an answer from Prometheus: bad_data: parse error"},
		"a query that takes long":    {503, "application/json", `{"status":"error","errorType":"timeout","error":"query timed out"}`, "timeout: query timed out"},
		"an error without a reason":  {500, "application/json", `{"status":"error"}`, "500 Internal Server Error: it does not say why"},
		"no token":                   {401, "text/plain", "Unauthorized", "you may not ask Prometheus without a token (401 Unauthorized): name a file that has one"},
		"somebody without the right": {403, "text/html", "<html>", "you may not ask Prometheus without a token (403 Forbidden)"},
		"another program":            {200, "text/html", "<html>Grafana</html>", "does not answer as a Prometheus, but 200 OK with text/html: give the address of its API, without /api/v1"},
		"nobody there":               {404, "text/plain", "404 page not found", "does not answer as a Prometheus, but 404 Not Found with text/plain"},
		"another API":                {200, "application/json", `{"kind":"Status"}`, "does not answer as a Prometheus"},
		"an answer without an end":   {200, "application/json", strings.Repeat(" ", 64<<20+1), "cannot read the answer of Prometheus: it is longer than 64 MiB"},
		"half of it":                 {200, "application/json", good[:50], "does not answer as a Prometheus"},
		"another kind of value":      {200, "application/json", `{"status":"success","data":{"resultType":"matrix","result":[]}}`, `it has a "matrix" instead of a vector`},
		"words":                      {200, "application/json", strings.Replace(good, "12.5", "many", 1), "does not answer as a Prometheus"},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", row.kind)
				w.WriteHeader(row.code)
				fmt.Fprint(w, row.body)
			}))
			defer server.Close()
			got, _, err := prometheus.Server{URL: server.URL}.Ask(t.Context(), "a", time.Unix(100, 0))
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// A proxy may let only readers in, who do not POST.
func TestReadersMayAsk(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("Authorization"))
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, good)
	}))
	defer server.Close()
	got, _, err := prometheus.Server{URL: server.URL, TokenFile: file(t, "secret")}.Ask(t.Context(), "a", time.Unix(100, 0))
	if diff := cmp.Diff([]string{"POST Bearer secret", "GET Bearer secret"}, asked); err != nil || len(got) != 1 || diff != "" {
		t.Errorf("got %v, %v\n%s", got, err, diff)
	}
}

// Go itself sends a token on to other ports of the same host.
func TestARedirectDoesNotTakeTheTokenAway(t *testing.T) {
	secret := file(t, "secret")
	for sentence, row := range map[string]struct {
		token, host string
		says        string // the error
		elsewhere   []string
	}{
		"another host":            {secret, "localhost", "the token is only for 127.0.0.1:", nil},
		"another port":            {secret, "127.0.0.1", "give the address of the server itself", nil},
		"without a token, a host": {"", "localhost", "", []string{""}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var elsewhere []string
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				elsewhere = append(elsewhere, r.Header.Get("Authorization"))
				fmt.Fprint(w, good)
			}))
			defer other.Close()
			server := httptest.NewServer(http.RedirectHandler(strings.Replace(other.URL, "127.0.0.1", row.host, 1), http.StatusTemporaryRedirect))
			defer server.Close()
			_, _, err := prometheus.Server{URL: server.URL, TokenFile: row.token}.Ask(t.Context(), "a", time.Unix(100, 0))
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(row.elsewhere, elsewhere); diff != "" {
				t.Errorf("the other server got (-want +got)\n%s", diff)
			}
		})
	}
}

func TestARedirectWithinTheServerIsFollowed(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/old/api/v1/query":
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
		case "/round/api/v1/query":
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		default:
			fmt.Fprint(w, good)
		}
	}))
	defer server.Close()
	secret := file(t, "secret")
	_, _, err := prometheus.Server{URL: server.URL + "/old", TokenFile: secret}.Ask(t.Context(), "a", time.Unix(100, 0))
	if diff := cmp.Diff([]string{"/old/api/v1/query Bearer secret", "/new Bearer secret"}, asked); err != nil || diff != "" {
		t.Errorf("got %v (-want +got)\n%s", err, diff)
	}
	_, _, err = prometheus.Server{URL: server.URL + "/round", TokenFile: secret}.Ask(t.Context(), "a", time.Unix(100, 0))
	if err == nil || !strings.Contains(err.Error(), "there is no end of redirects") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNotEvenAsked(t *testing.T) {
	for sentence, row := range map[string]struct {
		server prometheus.Server
		says   string
	}{
		"no address":                    {prometheus.Server{TokenFile: "t"}, `"" is no address of a Prometheus`},
		"a host":                        {prometheus.Server{URL: "prometheus:9090"}, "is no address of a Prometheus"},
		"a query":                       {prometheus.Server{URL: "http://p/?query=a"}, "is no address of a Prometheus"},
		"a token that others can read":  {prometheus.Server{URL: "http://p.example.com", TokenFile: "t"}, "the token would be readable on the way to p.example.com: use https"},
		"a token that is not there":     {prometheus.Server{URL: "https://p.example.com", TokenFile: "/not/there"}, "cannot read the token for Prometheus"},
		"a token without a letter":      {prometheus.Server{URL: "https://p.example.com", TokenFile: file(t, "\n")}, "is empty"},
		"certificates that are not":     {prometheus.Server{URL: "https://p.example.com", CAFile: file(t, "none")}, "has none in PEM format"},
		"certificates that are nowhere": {prometheus.Server{URL: "https://p.example.com", CAFile: "/not/there"}, "cannot read the certificates of Prometheus"},
	} {
		_, _, err := row.server.Ask(t.Context(), "a", time.Unix(100, 0))
		for _, err := range []error{err, row.server.Check()} {
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: got %v", sentence, err)
			}
		}
	}
}

// protected is a Prometheus with a certificate of its own, which knows one token at a time.
func protected(t *testing.T, token *string) (server *httptest.Server, ca string) {
	t.Helper()
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, good)
	}))
	t.Cleanup(server.Close)
	return server, inPEM(server.Certificate().Raw)
}

func TestCertificatesOfAnAuthorityOfOnesOwn(t *testing.T) {
	token := "secret"
	server, ca := protected(t, &token)
	s := prometheus.Server{URL: server.URL, TokenFile: file(t, token), CAFile: file(t, ca)}
	if got, _, err := s.Ask(t.Context(), "a", time.Unix(100, 0)); err != nil || len(got) != 1 || s.Check() != nil {
		t.Errorf("got %v, %v", got, err)
	}
	s.CAFile = ""
	if _, _, err := s.Ask(t.Context(), "a", time.Unix(100, 0)); err == nil || !strings.Contains(err.Error(), "cannot ask Prometheus") {
		t.Errorf("with the system's certificates: %v", err)
	}
}

// The kubelet replaces both files while the controller runs.
func TestFilesThatAreReplacedCountAtOnce(t *testing.T) {
	token := "first"
	server, ca := protected(t, &token)
	s := prometheus.Server{URL: server.URL, TokenFile: file(t, token), CAFile: file(t, ca)}
	expect := func(says string) {
		t.Helper()
		_, _, err := s.Ask(t.Context(), "a", time.Unix(100, 0))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	expect("")
	token = "second"
	expect("you may not ask Prometheus with the token in " + s.TokenFile + " (401 Unauthorized)")
	replace(t, s.TokenFile, token)
	expect("")
	replace(t, s.CAFile, stranger(t))
	expect("certificate")
	replace(t, s.CAFile, ca)
	expect("")
}

// stranger is a certificate of an authority that signed nothing here.
func stranger(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM(raw)
}

func inPEM(certificate []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

func replace(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
