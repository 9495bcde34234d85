// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/mlbatch/mlbatch/tools/mlbatch/usage/prometheus"
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

func TestWarningsAreNotes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Replace(good, `"infos"`, `"warnings":["store b is away"],"infos"`, 1))
	}))
	defer server.Close()
	got, notes, err := prometheus.Server{URL: server.URL}.Ask(t.Context(), "a", time.Unix(100, 0))
	if err != nil || len(got) != 1 || !cmp.Equal(notes, []string{"Prometheus warns, so hours may be missing: store b is away"}) {
		t.Errorf("got %v, %q, %v", got, notes, err)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for sentence, row := range map[string]struct {
		code       int
		kind, body string
		says       string
	}{
		"a query that is wrong":     {400, "application/json", `{"status":"error","errorType":"bad_data","error":"parse error"}`, "cannot get an answer from Prometheus: bad_data: parse error"},
		"a query that takes long":   {503, "application/json", `{"status":"error","errorType":"timeout","error":"query timed out"}`, "timeout: query timed out"},
		"an error without a reason": {500, "application/json", `{"status":"error"}`, "500 Internal Server Error: it does not say why"},
		"no token":                  {401, "text/plain", "Unauthorized", "you may not ask Prometheus (401 Unauthorized): name a file with a valid token, --prometheus-token-file"},
		"a token without the right": {403, "text/html", "<html>", "you may not ask Prometheus (403 Forbidden)"},
		"another program":           {200, "text/html", "<html>Grafana</html>", "does not answer as a Prometheus, but 200 OK with text/html: give the address of its API, without /api/v1"},
		"nobody there":              {404, "text/plain", "404 page not found", "does not answer as a Prometheus, but 404 Not Found with text/plain"},
		"another API":               {200, "application/json", `{"kind":"Status"}`, "does not answer as a Prometheus"},
		"an answer without an end":  {200, "application/json", strings.Repeat(" ", 64<<20+1), "cannot read the answer of Prometheus: it is longer than 64 MiB"},
		"half of it":                {200, "application/json", good[:50], "does not answer as a Prometheus"},
		"another kind of value":     {200, "application/json", `{"status":"success","data":{"resultType":"matrix","result":[]}}`, `it has a "matrix" instead of a vector`},
		"a histogram":               {200, "application/json", strings.Replace(good, `"value":[1,"12.5"]`, `"histogram":[1,{"count":"1","sum":"2","buckets":[]}]`, 1), "it is no number"},
		"no number":                 {200, "application/json", strings.Replace(good, "12.5", "NaN", 1), `about {namespace="blue"} => NaN @[1]: it is no number`},
		"without end":               {200, "application/json", strings.Replace(good, "12.5", "+Inf", 1), "it is no number"},
		"words":                     {200, "application/json", strings.Replace(good, "12.5", "many", 1), "does not answer as a Prometheus"},
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

// A proxy may let only readers in, who do not POST. The token goes to nobody else.
func TestTheTokenStaysWithTheServerAndReadersMayAsk(t *testing.T) {
	var asked []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" elsewhere "+r.Header.Get("Authorization"))
		fmt.Fprint(w, good)
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("Authorization"))
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	got, _, err := prometheus.Server{URL: server.URL, TokenFile: file(t, "secret")}.Ask(t.Context(), "a", time.Unix(100, 0))
	if diff := cmp.Diff([]string{"POST Bearer secret", "GET Bearer secret", "GET elsewhere "}, asked); err != nil || len(got) != 1 || diff != "" {
		t.Errorf("got %v, %v\n%s", got, err, diff)
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
		"certificates that are not":     {prometheus.Server{URL: "https://p.example.com", CAFile: file(t, "none")}, "has none in PEM format"},
		"certificates that are nowhere": {prometheus.Server{URL: "https://p.example.com", CAFile: "/not/there"}, "cannot read the certificates of Prometheus"},
	} {
		if _, _, err := row.server.Ask(t.Context(), "a", time.Unix(100, 0)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v", sentence, err)
		}
	}
}

func TestCertificatesOfAnAuthorityOfOnesOwn(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, good) }))
	defer server.Close()
	own := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if got, _, err := (prometheus.Server{URL: server.URL, CAFile: own}).Ask(t.Context(), "a", time.Unix(100, 0)); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, _, err := (prometheus.Server{URL: server.URL}).Ask(t.Context(), "a", time.Unix(100, 0)); err == nil || !strings.Contains(err.Error(), "cannot ask Prometheus") {
		t.Errorf("with the system's certificates: %v", err)
	}
}
