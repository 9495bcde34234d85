// SPDX-License-Identifier: Apache-2.0

package metricsaccess

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// prometheus is the user who may read metrics, with the token "known".
var prometheus = authenticationv1.UserInfo{
	Username: "system:serviceaccount:monitoring:prometheus", UID: "7", Groups: []string{"system:authenticated"},
	Extra: map[string]authenticationv1.ExtraValue{"node": {"a"}},
}

// apiServer answers reviews, or fails.
type apiServer struct {
	broken string // the resource whose requests fail
	asked  int
	token  authenticationv1.TokenReview
	access authorizationv1.SubjectAccessReview
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	resource := parts[len(parts)-1]
	s.asked++
	if resource == s.broken {
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch resource {
	case "tokenreviews":
		_ = json.NewDecoder(r.Body).Decode(&s.token)
		if s.token.Status.Authenticated = s.token.Spec.Token != "unknown"; s.token.Status.Authenticated {
			s.token.Status.User = prometheus
		}
		_ = json.NewEncoder(w).Encode(s.token)
	case "subjectaccessreviews":
		_ = json.NewDecoder(r.Body).Decode(&s.access)
		s.access.Status.Allowed = s.token.Spec.Token == "known"
		_ = json.NewEncoder(w).Encode(s.access)
	}
}

// guarded returns metrics behind the filter, which uses that API server.
func guarded(t *testing.T, api *apiServer) http.Handler {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	filter, err := Filter(config, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// ask requests the metrics and returns the response.
func ask(metrics http.Handler, authorization string) (code int, body string) {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Authorization", authorization)
	answer := httptest.NewRecorder()
	metrics.ServeHTTP(answer, request)
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

func TestMetricsAreForWhoMayGetThem(t *testing.T) {
	for what, test := range map[string]struct {
		authorization, broken string
		code                  int
		body                  string
	}{
		"a known token whose user has the right":     {"Bearer known", "", http.StatusOK, "metrics"},
		"the scheme in small letters":                {"bearer known", "", http.StatusOK, "metrics"},
		"no token":                                   {"", "", http.StatusUnauthorized, "a bearer token of this cluster is required"},
		"an empty token":                             {"Bearer ", "", http.StatusUnauthorized, "a bearer token of this cluster is required"},
		"a password":                                 {"Basic known", "", http.StatusUnauthorized, "a bearer token of this cluster is required"},
		"a token that the API server does not know":  {"Bearer unknown", "", http.StatusUnauthorized, "a bearer token of this cluster is required"},
		"a known token whose user has no right":      {"Bearer other", "", http.StatusForbidden, prometheus.Username + " has no role that allows it to get /metrics"},
		"an API server that does not review tokens":  {"Bearer known", "tokenreviews", http.StatusInternalServerError, "cannot have the API server review the token"},
		"an API server that does not review a right": {"Bearer known", "subjectaccessreviews", http.StatusInternalServerError, "cannot have the API server review the right to read the metrics"},
	} {
		t.Run(what, func(t *testing.T) {
			code, body := ask(guarded(t, &apiServer{broken: test.broken}), test.authorization)
			if code != test.code || body != test.body {
				t.Errorf("answered with %d %q, want %d %q", code, body, test.code, test.body)
			}
		})
	}
}

func TestTheRightIsAskedForInTheNameOfWhoAsks(t *testing.T) {
	api := &apiServer{}
	ask(guarded(t, api), "Bearer known")
	want := authorizationv1.SubjectAccessReviewSpec{
		User: prometheus.Username, UID: prometheus.UID, Groups: prometheus.Groups, Extra: map[string]authorizationv1.ExtraValue{"node": {"a"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}
	if diff := cmp.Diff(want, api.access.Spec); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAFloodOfStrangersKeepsNobodyWhoIsKnownFromTheMetrics(t *testing.T) {
	api := &apiServer{}
	metrics := guarded(t, api)
	ask(metrics, "Bearer known")
	asked := api.asked
	const flood = 10 * reviewBurst
	refused := 0
	for range flood {
		if code, _ := ask(metrics, "Bearer unknown"); code == http.StatusTooManyRequests {
			refused++
		}
	}
	if got := api.asked - asked; refused == 0 || got != flood-refused {
		t.Errorf("%d of %d strangers were refused, and the API server was asked %d times", refused, flood, got)
	}
	if code, body := ask(metrics, "Bearer known"); code != http.StatusOK {
		t.Errorf("a client that had access before gets %d %q", code, body)
	}
}
