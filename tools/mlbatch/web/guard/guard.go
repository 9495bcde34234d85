// SPDX-License-Identifier: Apache-2.0

// Package guard answers: may this request see the page? A page on one's own machine can be reached by every user and
// every program of the machine, and by every web page that its user visits. It knows nothing of clusters.
package guard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

// Guard lets the one in who has the address with the token, and whoever has the cookie that it was exchanged for.
type Guard struct {
	// folder is where everything is. Cookies do not know ports: below a name that cannot be guessed, the browser does
	// not send ours to other servers of this machine.
	folder string
	cookie string

	mutex sync.Mutex
	// token is empty when it has been used.
	token string
	// forms are the tokens of forms that were shown and not sent.
	forms map[string]bool
}

// New returns a guard with fresh secrets, each of which has at least 128 bits.
func New() *Guard {
	return &Guard{folder: "/" + rand.Text(), cookie: rand.Text(), token: rand.Text(), forms: map[string]bool{}}
}

// Folder is the path of everything that the guard lets see.
func (g *Guard) Folder() string { return g.folder }

// Entrance is the path of the address that lets its first visitor in.
func (g *Guard) Entrance() string { return entrance + "?token=" + g.token }

const entrance, cookieName = "/open", "mlbatch"

// headers are those of all answers.
var headers = map[string]string{
	// Nothing is loaded from elsewhere, nothing runs that is not in a file of ours, and nothing frames the page.
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// formField is the field in which a form has its token. The others are limits.
const (
	formField = "form"
	mostForms = 100
	mostBytes = 4 << 10
)

// Form returns the token of a new form, which can be sent once.
func (g *Guard) Form() string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if len(g.forms) >= mostForms {
		clear(g.forms)
	}
	token := rand.Text()
	g.forms[token] = true
	return token
}

// refusalOfForm is why what was sent is no form of ours that was not sent before, or 0.
func (g *Guard) refusalOfForm(w http.ResponseWriter, r *http.Request) (code int, sentence string) {
	r.Body = http.MaxBytesReader(w, r.Body, mostBytes)
	token := r.PostFormValue(formField)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if !fromHere(r) || !g.forms[token] {
		return http.StatusForbidden, "this form is not of this page, or was sent already: go back, and load the page again"
	}
	delete(g.forms, token)
	return 0, ""
}

// Protect passes on what is allowed, without the folder in its path.
func (g *Guard) Protect(next http.Handler) http.Handler {
	inside := http.StripPrefix(g.folder, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch code, sentence := g.refusal(w, r); {
		case code != 0:
			refuse(w, code, sentence)
		case r.URL.Path == entrance:
			g.open(w, r)
		default:
			inside.ServeHTTP(w, r)
		}
	})
}

// refusal is why a request is not passed on, or 0.
func (g *Guard) refusal(w http.ResponseWriter, r *http.Request) (code int, sentence string) {
	switch {
	case !onThisMachine(r.Host):
		return http.StatusMisdirectedRequest, "open the address as it was printed: this name is not of this machine"
	case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost}, r.Method):
		return http.StatusMethodNotAllowed, "this page only shows what is there, and takes forms"
	case r.URL.Path == entrance && r.Method != http.MethodPost:
		return 0, ""
	case fromElsewhere(r):
		return http.StatusForbidden, "another page may not ask for this one"
	case !g.knows(r):
		return http.StatusForbidden, "open the address that mlbatch web has printed; if it was used already, run mlbatch web again"
	case path.Clean(r.URL.Path) != strings.TrimSuffix(r.URL.Path, "/"):
		return http.StatusNotFound, "there is no such page"
	case r.Method == http.MethodPost:
		return g.refusalOfForm(w, r)
	}
	return 0, ""
}

// onThisMachine: a name that an attacker lets point to this machine is not ours. Ports may be forwarded.
func onThisMachine(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return name == "localhost" || name == "127.0.0.1"
}

// fromElsewhere reports whether a page of another origin has sent a request. Cookies alone do not tell: another port of
// this machine is the same site.
func fromElsewhere(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if site == "same-origin" && origin == "null" { // a form of a page that may not say where it was
		return false
	}
	return site != "" && site != "same-origin" && site != "none" || origin != "" && origin != "http://"+r.Host
}

// fromHere reports whether a browser says that a page of ours has sent a request.
func fromHere(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "same-origin" || r.Header.Get("Origin") == "http://"+r.Host
}

// knows reports whether a request has the cookie, and is about what is in the folder.
func (g *Guard) knows(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, g.folder+"/") {
		return false
	}
	for _, c := range r.CookiesNamed(cookieName) {
		if same(c.Value, g.cookie) {
			return true
		}
	}
	return false
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// open exchanges the token for the cookie, once.
func (g *Guard) open(w http.ResponseWriter, r *http.Request) {
	if !g.redeem(r.URL.Query().Get("token")) {
		refuse(w, http.StatusForbidden, "this address has been used, or is not right: run mlbatch web again")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.cookie, Path: g.folder + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A redirect would still count as sent by whoever has opened the address, and would not have the cookie.
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>mlbatch</title><link rel="icon" href="` + g.folder + `/icon.svg">` +
		`<meta http-equiv="refresh" content="0; url=` + g.folder + `/">` +
		`<p><a href="` + g.folder + `/">Continue</a></p></html>`))
}

func (g *Guard) redeem(token string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.token == "" || !same(token, g.token) {
		return false
	}
	g.token = ""
	return true
}

func refuse(w http.ResponseWriter, code int, sentence string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Connection", "close") // whoever is refused keeps no connection
	w.WriteHeader(code)
	_, _ = w.Write([]byte(sentence + "\n"))
}
