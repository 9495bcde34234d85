// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
)

// Another user of the machine, or a web page that the user visits, sends these. None gets anything.
func TestRequestsOfOthersAreRefused(t *testing.T) {
	s := opened(t, cluster(t, platform, wrapper("secret")), quick)
	for attack, row := range map[string]struct {
		path    string
		headers []string
		code    int
	}{
		"a cross-site request of a page that the user visits":     {"/", []string{"Sec-Fetch-Site: cross-site"}, http.StatusForbidden},
		"a page on another port of this machine, which is a site": {"/", []string{"Sec-Fetch-Site: same-site"}, http.StatusForbidden},
		"a script of another origin":                              {"/api/list", []string{"Origin: http://evil.example"}, http.StatusForbidden},
		"a script of another port":                                {"/api/list", []string{"Origin: http://127.0.0.1:1"}, http.StatusForbidden},
		"a file, or a frame in a sandbox":                         {"/api/list", []string{"Origin: null"}, http.StatusForbidden},
		"DNS rebinding":                                           {"/", []string{"Host: evil.example"}, http.StatusMisdirectedRequest},
		"DNS rebinding with a name that looks like ours":          {"/", []string{"Host: 127.0.0.1.evil.example"}, http.StatusMisdirectedRequest},
		"DNS rebinding to a stream":                               {"/live/", []string{"Host: localhost.evil.example:80"}, http.StatusMisdirectedRequest},
		"a path that leaves the folder":                           {"/../../etc/passwd", nil, http.StatusNotFound},
		"a path that leaves the folder in disguise":               {"/%2e%2e%2f%2e%2e%2fetc/passwd", nil, http.StatusNotFound},
		"a path with a backslash":                                 {"/..\\..\\etc/passwd", nil, http.StatusNotFound},
		"a path that names nothing twice":                         {"//api/list", nil, http.StatusNotFound},
		"a name with a path in it":                                {"/job/blue/appwrapper/..%2f..%2fsecret", nil, http.StatusNotFound},
		"a file of the program":                                   {"/page.html", nil, http.StatusNotFound},
		"a folder of files":                                       {"/views/", nil, http.StatusNotFound},
		"a command that a page does not show":                     {"/api/cancel", nil, http.StatusNotFound},
		"a flag of a command that is not for pages":               {"/api/list?kubeconfig=/etc/passwd", nil, http.StatusBadRequest},
	} {
		code, body := s.ask(s.folder+row.path, row.headers...)
		if code != row.code || strings.Contains(body, "secret") || strings.Contains(body, "root:") {
			t.Errorf("%s: %d: %s", attack, code, body)
		}
	}
	s.has("/", "secret") // its user still sees it
}

// Without the cookie nothing is seen, whoever knows the address of the folder; and a token counts once.
func TestTokensAndCookiesCannotBeGuessedOrUsedTwice(t *testing.T) {
	s := opened(t, cluster(t, platform, wrapper("secret")), quick)
	theirs := *s
	theirs.Jar = nil
	token := strings.TrimPrefix(s.entrance, "/open?token=")
	for attack, try := range map[string][]string{
		"without a cookie":                {s.folder + "/"},
		"without the folder":              {"/"},
		"with the folder alone":           {s.folder},
		"a stream without a cookie":       {s.folder + "/live/"},
		"for programs":                    {s.folder + "/api/list"},
		"a cookie that is guessed":        {s.folder + "/", "Cookie: mlbatch=guessed"},
		"an empty cookie":                 {s.folder + "/", "Cookie: mlbatch="},
		"the token as a cookie":           {s.folder + "/", "Cookie: mlbatch=" + token},
		"the folder as a cookie":          {s.folder + "/", "Cookie: mlbatch=" + strings.Trim(s.folder, "/")},
		"a token that was used":           {s.entrance},
		"an empty token":                  {"/open?token="},
		"no token":                        {"/open"},
		"a token that is guessed":         {"/open?token=" + strings.Repeat("A", len(token))},
		"the token at another address":    {s.folder + "/?token=" + token},
		"the token for a whole new start": {s.entrance + "&token=" + token},
	} {
		if code, body := theirs.ask(try[0], try[1:]...); code != http.StatusForbidden || strings.Contains(body, "secret") || strings.Contains(body, s.folder) {
			t.Errorf("%s: %d: %s", attack, code, body)
		}
	}
	if len(token) < 26 || len(s.folder) < 27 {
		t.Errorf("%s and %s can be guessed", token, s.folder)
	}
	if other := serve(t, cluster(t, platform), quick); other.entrance == s.entrance {
		t.Error("two pages have the same token")
	}
}

// A browser keeps the cookie for this page alone, and lets nothing of it out.
func TestTheCookieIsForThisPageAlone(t *testing.T) {
	s := serve(t, cluster(t, platform), quick)
	response := s.request(http.MethodGet, s.entrance, "Sec-Fetch-Site: cross-site") // a file opens it
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	folder := toFolder.FindStringSubmatch(string(body))
	cookies := response.Cookies()
	if folder == nil || len(cookies) != 1 {
		t.Fatalf("%s, %v", body, cookies)
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != folder[1]+"/" || c.Domain != "" || strings.Contains(s.entrance, c.Value) || strings.Contains(folder[1], c.Value) {
		t.Errorf("got %v", c)
	}
	if strings.Contains(string(body), "token") {
		t.Errorf("the token is on the page\n%s", body)
	}
}

// Every answer, also a refusal, forbids frames, foreign code, guesses of its type, and to say where it was.
func TestEveryAnswerHasTheHeaders(t *testing.T) {
	s := serve(t, cluster(t, platform), quick)
	paths := []string{"/", "/nothing", "/open"}
	s.open()
	for _, path := range []string{"/", "/page.css", "/live.js", "/api/list", "/api/none", "/live/", "/none", "/job/a/b/c"} {
		paths = append(paths, s.folder+path)
	}
	for _, path := range paths {
		response := s.request(http.MethodGet, path)
		response.Body.Close()
		policy := response.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Access-Control-Allow-Origin": ""} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}

var inline = regexp.MustCompile(`(?i)<script[^>]*>[^<]|\son[a-z]+\s*=|\sstyle\s*=|javascript:|<style`)

// What others write stays text: names, labels, messages and last words.
func TestTextOfOthersIsNoCode(t *testing.T) {
	const script = `<script>alert(1)</script><img src=x onerror=alert(1)>"'{{.}}` + "\u202e\x1b[31m"
	failed := `{"phase":"Failed","resettingCount":1,"conditions":[{"type":"Unhealthy","status":"True","reason":"R","message":` + text(script) + `,"lastTransitionTime":"2026-11-22T10:00:00Z"}],` +
		`"lastAttempts":[{"began":"2026-11-22T10:00:00Z","ended":"2026-11-22T10:05:00Z","cause":` + text(script) + `,"pod":` + text(script) + `,"node":` + text(script) + `,"exitCode":1,"lastWords":` + text(script) + `}]}`
	evil := strings.ReplaceAll(wrapper(script, failed), `"kueue.x-k8s.io/queue-name":"q"`, `"kueue.x-k8s.io/queue-name":`+text(script))
	named := strings.ReplaceAll(evil, `"name":`+text(script), `"name":"train"`)
	queue := strings.ReplaceAll(queueOfTeam, `"vision"`, text(script))
	s := opened(t, cluster(t, platform, evil, named, queue, flavor, strings.ReplaceAll(node, `"n1"`, text(script))), quick)
	for _, path := range []string{"/", "/?me=false&namespace=" + "%3Cscript%3Ealert(1)%3C/script%3E", "/team", "/cluster", "/usage?by=%3Cscript%3E", "/check", "/job/blue/appwrapper/train", "/job/%3Cscript%3E/x%22onclick=/%3Cscript%3E"} {
		_, page := s.ask(s.folder + path)
		if found := inline.FindString(strings.ReplaceAll(page, "onerror=alert(1)&gt;", "")); found != "" || strings.ContainsAny(page, "\u202e\x1b") {
			t.Errorf("%s has %q in\n%s", path, found, page)
		}
	}
	s.has("/job/blue/appwrapper/train", "&lt;script&gt;alert(1)&lt;/script&gt;")
}

// No address leads to another server: there is no redirect to a place that the address names.
func TestThereIsNoOpenRedirect(t *testing.T) {
	s := opened(t, cluster(t, platform), quick)
	for _, path := range []string{"//evil.example/", "//evil.example/%2e%2e", "/\\evil.example", "/.//evil.example", "/?next=http://evil.example/", "/job//evil.example/", "/%0d%0aLocation:%20http://evil.example"} {
		response := s.request(http.MethodGet, s.folder+path)
		response.Body.Close()
		to, err := response.Location()
		if err == nil && (to.Host != "" && !strings.HasSuffix(s.origin, "//"+to.Host)) {
			t.Errorf("%s leads to %s", path, to)
		}
	}
}

// Without a form nothing but GET and HEAD is answered, and nothing but reading is requested of the cluster.
func TestNothingIsChanged(t *testing.T) {
	api := cluster(t, platform, wrapper("train"), queueOfTeam)
	s := opened(t, api, quick)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace} {
		for _, path := range []string{s.folder + "/", s.folder + "/api/list", s.entrance} {
			response := s.request(method, path)
			response.Body.Close()
			want := http.StatusMethodNotAllowed
			if method == http.MethodPost {
				want = http.StatusForbidden
			}
			if response.StatusCode != want {
				t.Errorf("%s %s: %d", method, path, response.StatusCode)
			}
		}
	}
	for _, path := range []string{"/", "/team", "/cluster", "/usage", "/check", "/audit", "/job/blue/appwrapper/train", "/job/blue/appwrapper/train/cancel", "/job/blue/appwrapper/train/retry"} {
		s.page(path)
	}
	for _, request := range api.Requests() {
		if !strings.HasPrefix(request, "GET ") && !strings.HasSuffix(request, "/selfsubjectreviews") {
			t.Errorf("it sent %s", request)
		}
	}
}

// A thousand streams, with the cookie or without, leave the page usable.
func TestAThousandStreamsAreTooMany(t *testing.T) {
	s := opened(t, cluster(t, platform, wrapper("train")), quick)
	codes := map[int]int{}
	for range 1000 {
		response := s.request(http.MethodGet, s.folder+"/live/")
		codes[response.StatusCode]++
		if response.StatusCode == http.StatusOK {
			t.Cleanup(func() { response.Body.Close() })
			continue
		}
		response.Body.Close()
	}
	if codes[http.StatusOK] == 0 || codes[http.StatusOK] > 64 || codes[http.StatusServiceUnavailable] == 0 {
		t.Errorf("got %v", codes)
	}
	s.has("/", "train")
}

// Whoever sends a request slowly, or one that is too large, is cut off.
func TestSlowAndLargeRequestsEnd(t *testing.T) {
	s := opened(t, cluster(t, platform), quick)
	for what, request := range map[string]string{
		"a request that never ends": "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
		"large headers":             "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 1<<20),
		"no HTTP":                   "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.origin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience.For(patience.Short)))
		fmt.Fprint(c, request)
		if answer, err := io.ReadAll(c); isTimeout(err) || strings.Contains(string(answer), "200 OK") {
			t.Errorf("%s: %s, %v", what, answer, err)
		}
	}
}

// Whoever does not read what is sent is cut off, and holds no stream.
func TestSlowReadersAreCutOff(t *testing.T) {
	pace := quick
	pace.Slowest = 200 * time.Millisecond
	api := cluster(t, platform, numbered(200, func(i int) string { return wrapper(strings.Repeat("a", 200) + name(i)) })...)
	s := opened(t, api, pace)
	cookie := s.request(http.MethodGet, s.folder+"/page.css").Request.Cookies()[0].String()
	for _, path := range []string{"/live/?me=false", "/?me=false"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.origin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		i := 0
		s.until(func() bool { // it gets more than can be on its way, and learns of the end when it asks for more
			i++
			put(t, api, wrapper(strings.Repeat("b", 200)+name(i)))
			_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: %s\r\n\r\n", s.folder+path, cookie)
			return err != nil
		})
	}
	s.has("/?me=false", "200 of")
}

// Only its reader may be too slow for an answer, not the cluster that is asked for it.
func TestSlowClustersAreAwaited(t *testing.T) {
	pace := quick
	pace.Slowest = 100 * time.Millisecond
	api := cluster(t, platform)
	api.Refuses = func(string, string, string) bool { time.Sleep(2 * pace.Slowest); return false }
	s := opened(t, api, pace)
	s.has("/audit", "</html>")
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// The page of an earlier program cannot be opened with what that one had.
func TestSecretsEndWithTheProgram(t *testing.T) {
	api := cluster(t, platform, wrapper("secret"))
	before, after := opened(t, api, quick), opened(t, api, quick)
	if before.folder == after.folder {
		t.Error("two programs have the same folder")
	}
	cookies := before.request(http.MethodGet, before.folder+"/").Request.Cookies()
	if len(cookies) != 1 {
		t.Fatal(cookies)
	}
	theirs := *after
	theirs.Jar = nil
	if code, _ := theirs.ask(after.folder+"/", "Cookie: "+cookies[0].String()); code != http.StatusForbidden {
		t.Errorf("got %d", code)
	}
	if names := slices.Collect(func(yield func(string) bool) {
		for _, c := range after.request(http.MethodGet, after.folder+"/").Request.Cookies() {
			if !yield(c.Name) {
				return
			}
		}
	}); len(names) != 1 {
		t.Errorf("a cookie of one page is sent to the other: %v", names)
	}
}
