// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
)

var inForm = regexp.MustCompile(`<form method="post" action="([^"]+)">|name="(form|uid)" value="([^"]*)"`)

// form is the one on a page: its address and its fields.
func (s *site) form(path string) (to string, fields url.Values) {
	s.Helper()
	fields = url.Values{}
	for _, found := range inForm.FindAllStringSubmatch(s.page(path), -1) {
		if to += found[1]; found[2] != "" {
			fields.Set(found[2], found[3])
		}
	}
	if to == "" || fields.Get("form") == "" {
		s.Fatalf("%s has no form", path)
	}
	return to, fields
}

// sends sends a form as a browser does, or with other headers.
func (s *site) sends(to string, fields url.Values, headers ...string) (code int, body string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.origin+to, strings.NewReader(fields.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	response, err := s.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(read)
}

// byTheForm are the headers of a browser, which may not say where the form was.
var byTheForm = []string{"Sec-Fetch-Site: same-origin", "Origin: null"}

func exists(api *fakeapiserver.Server, name string) bool {
	return api.Get("appwrappers", key(name)) != nil
}

func TestWorkIsCancelledAndRetriedAfterAQuestion(t *testing.T) {
	api := cluster(t, platform, wrapper("train"), wrapper("lost", `{"phase":"Failed"}`))
	s := opened(t, api, quick)
	s.has("/job/blue/appwrapper/train", `href="`+s.folder+`/job/blue/appwrapper/train/cancel"`, `href="`+s.folder+`/job/blue/appwrapper/train/retry"`)
	s.shows(s.live("/job/blue/appwrapper/train"), `href="`+s.folder+`/job/blue/appwrapper/train/cancel"`)
	s.has("/job/blue/appwrapper/train/cancel", "Delete AppWrapper train in namespace blue, which is Suspended, and all that it has created?", "mlbatch cancel appwrapper/train --namespace=blue")
	for _, row := range []struct{ path, says, there, gone string }{
		{"/job/blue/appwrapper/train/cancel", "AppWrapper train was deleted in namespace blue", "lost", "train"},
		{"/job/blue/appwrapper/lost/retry", "AppWrapper lost-2 was submitted in namespace blue", "lost-2", "train"},
	} {
		to, fields := s.form(row.path)
		if exists(api, row.there) == (row.there == "lost-2") {
			t.Errorf("%s did something before it was confirmed", row.path)
		}
		code, body := s.sends(to, fields, byTheForm...)
		if code != http.StatusOK || !strings.Contains(body, row.says) || !exists(api, row.there) || exists(api, row.gone) {
			t.Errorf("%s: %d: %s", row.path, code, body)
		}
	}
}

// What the command refuses, or the cluster, is said in the command's words.
func TestAnActionThatIsRefusedIsASentence(t *testing.T) {
	api := cluster(t, platform, wrapper("train"))
	api.Refuses = func(verb, _, _ string) bool { return verb == "delete" }
	s := opened(t, api, quick)
	for path, want := range map[string]string{
		"/job/blue/appwrapper/train/cancel": "you may not delete appwrappers in namespace blue",
		"/job/blue/appwrapper/train/retry":  "AppWrapper train has not ended: it is Suspended",
	} {
		to, fields := s.form(path)
		if code, body := s.sends(to, fields, byTheForm...); code != http.StatusOK || !strings.Contains(body, want) || !exists(api, "train") {
			t.Errorf("%s: %d: %s", path, code, body)
		}
	}
	s.has("/job/blue/appwrapper/none/cancel", "there is no appwrapper none in namespace blue")
	for _, path := range []string{"/job/blue/appwrapper/train/delete", "/live/job/blue/appwrapper/train/cancel"} {
		if code, _ := s.ask(s.folder + path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// Nobody but the user sends a form, once, and about what the question was about.
func TestFormsOfOthersDoNothing(t *testing.T) {
	const path = "/job/blue/appwrapper/train/cancel"
	api := cluster(t, platform, wrapper("train"), wrapper("other"))
	s := opened(t, api, quick)
	refused := func(attack, to string, fields url.Values, headers ...string) {
		t.Helper()
		if code, body := s.sends(to, fields, headers...); code == http.StatusOK || !exists(api, "train") {
			t.Errorf("%s: %d: %s", attack, code, body)
		}
	}
	for attack, headers := range map[string][]string{
		"another site":                 {"Sec-Fetch-Site: cross-site", "Origin: http://evil.example"},
		"another port":                 {"Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:1"},
		"a frame in a sandbox":         {"Origin: null"},
		"an address that is typed":     {"Sec-Fetch-Site: none"},
		"a program without a browser":  nil,
		"DNS rebinding":                {"Sec-Fetch-Site: same-origin", "Host: evil.example"},
		"a site that claims to be one": {"Sec-Fetch-Site: same-origin", "Origin: http://evil.example"},
	} {
		to, fields := s.form(path)
		refused(attack, to, fields, headers...)
	}
	to, fields := s.form(path)
	refused("no token", to, url.Values{"uid": fields["uid"]}, byTheForm...)
	refused("a token in the address", to+"?form="+fields.Get("form"), url.Values{"uid": fields["uid"]}, byTheForm...)
	refused("a guessed token", to, url.Values{"form": {"guessed"}, "uid": fields["uid"]}, byTheForm...)
	refused("an empty token", to, url.Values{"form": {""}, "uid": fields["uid"]}, byTheForm...)
	refused("a form that is too large", to, url.Values{"uid": {strings.Repeat("a", 1<<20)}, "form": fields["form"]}, byTheForm...)

	to, fields = s.form("/job/blue/appwrapper/other/cancel")
	if code, body := s.sends(to, fields, byTheForm...); code != http.StatusOK || exists(api, "other") {
		t.Fatalf("%d: %s", code, body)
	}
	refused("a form that was sent", strings.Replace(to, "other", "train", 1), fields, byTheForm...)

	to, fields = s.form(path)
	api.Delete("appwrappers", key("train"))
	put(t, api, wrapper("train"))
	if _, body := s.sends(to, fields, byTheForm...); !strings.Contains(body, "there is another one of this name now") || !exists(api, "train") {
		t.Errorf("another object of the name: %s", body)
	}
}
