// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// phrases are what readers look for, and the first result that they get.
var phrases = []struct{ phrase, first string }{
	{"user's guide", "docs/guide.html"},                                 // a title
	{"Lending  and borrowing", "docs/quota.html#lending-and-borrowing"}, // a heading
	{"tests gpus and writes the result", "docs/index.html#words"},       // the text
	{"samples/rayjob.yaml", "samples/rayjob.yaml.html"},                 // a file
	{"why is my work not", "docs/why.html"},                             // words of a title
	{"(job)*[x] <b>", ""},                                               // nothing
	{"onlaunch <script>alert(1)</script>", ""},                          // nothing
	{"mlbatch why --watch", "docs/commands-reference.html#mlbatch-why"}, // a command
}

func TestTheSearchFindsPhrases(t *testing.T) {
	b := open(t, 360, 740, "light")
	b.visit("docs/releasing.html")
	for _, test := range phrases {
		eval[chromedp.Void](b, `document.querySelector("#query").select()`)
		b.do(chromedp.KeyEvent(test.phrase))
		b.until(`!document.querySelector("#results").hidden`)
		first := eval[string](b, `document.querySelector("#results a")?.href ?? ""`)
		want := test.first
		if want != "" {
			want = server.URL + "/" + want
		}
		if first != want {
			t.Errorf("%q: the first result is %q, want %q", test.phrase, first, want)
		}
		for _, colours := range []string{"dark", "light"} {
			b.prefer(colours)
			if got := b.see(); len(got.Wider)+len(got.Faint) > 0 {
				t.Errorf("%q: the results in %s: %q", test.phrase, colours, append(got.Wider, got.Faint...))
			}
		}
	}
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

// Without a mouse, and without a server.
func TestTheSearchWorksFromADisk(t *testing.T) {
	b := open(t, 1280, 900, "dark")
	b.do(chromedp.Navigate("file://" + filepath.ToSlash(folder) + "/docs/api/appwrapper.html"))
	b.press("/")
	b.do(chromedp.KeyEvent("lending and borrowing"))
	b.until(`document.querySelectorAll("#results a").length > 1`)
	b.press("ArrowDown")
	b.press("ArrowDown")
	b.until(`document.activeElement === document.querySelectorAll("#results a")[1]`)
	b.press("Escape")
	b.until(`document.activeElement.id === "query" && document.querySelector("#results").hidden`)
	b.press("Enter")
	b.until(`!document.querySelector("#results").hidden`)
	b.press("Enter")
	b.until(`location.href.endsWith("/docs/quota.html#lending-and-borrowing")`)
	b.until(`document.querySelector("h3#lending-and-borrowing, h2#lending-and-borrowing").getBoundingClientRect().top < innerHeight`)
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}
