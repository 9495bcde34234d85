// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// All pages on a phone and on a desk, in light and in dark.
func TestEveryPageIsFine(t *testing.T) {
	all := map[string]seen{} // by page
	phone, desk := open(t, 360, 740, "dark"), open(t, 1280, 900, "light")
	for _, page := range pageFiles(t) {
		for _, b := range []*tab{phone, desk} {
			b.visit(page)
			got := b.see()
			if got.Texts < 5 {
				t.Errorf("%s: only %d texts were found", page, got.Texts)
			}
			for _, wider := range got.Wider {
				t.Errorf("%s scrolls sideways: %s", page, wider)
			}
			for _, faint := range got.Faint {
				t.Errorf("%s: %s", page, faint)
			}
			for _, complaint := range b.said() {
				t.Errorf("%s: the console says %s", page, complaint)
			}
			all[page] = got
		}
	}
	checkLinks(t, all)
}

// checkLinks checks that links within the site lead to a file, and to what has the name after #.
func checkLinks(t *testing.T, all map[string]seen) {
	t.Helper()
	tested := 0
	for page, got := range all {
		for _, link := range got.Links {
			inside, is := strings.CutPrefix(link, server.URL+"/")
			if !is {
				continue
			}
			tested++
			parsed, err := url.Parse(inside)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			name := parsed.Path
			if name == "" || strings.HasSuffix(name, "/") {
				name += "index.html"
			}
			if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name))); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, name)
			} else if id := parsed.Fragment; id != "" && !slices.Contains(all[name].IDs, id) {
				t.Errorf("%s links to %s#%s, which is not on that page", page, name, id)
			}
		}
	}
	if tested < 3000 {
		t.Errorf("only %d links were found", tested)
	}
}

// The test is able to fail.
func TestWhatIsWrongIsSeen(t *testing.T) {
	b := open(t, 360, 740, "light")
	b.visit("docs/guide.html")
	eval[chromedp.Void](b, `{
		const p = document.createElement("p");
		p.textContent = "x".repeat(500);
		document.querySelector("main").append(p);
		document.querySelector("main p").style.color = "#999999";
		console.error("on purpose"); }`)
	if got := b.see(); !slices.Contains(got.Faint, "p has a contrast of 2.85") || len(got.Wider) > 0 {
		t.Errorf("faint is %q, wider is %q", got.Faint, got.Wider)
	}
	if said := b.said(); len(said) != 1 {
		t.Errorf("the console said %q", said)
	}
	eval[chromedp.Void](b, `document.querySelector("main > p:last-child").style.overflowWrap = "normal"`)
	if got := b.see(); len(got.Wider) == 0 {
		t.Error("a page that scrolls sideways was not seen")
	}
}

// Without scripts there are all pages, and no buttons that do nothing.
func TestPagesAreCompleteWithoutScripts(t *testing.T) {
	b := open(t, 360, 740, "light")
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit("docs/guide.html")
	b.do(
		chromedp.WaitVisible(chromedp.CSS("nav.pages a[aria-current]")), chromedp.WaitVisible(chromedp.CSS("main h1")),
		chromedp.WaitNotVisible(chromedp.CSS(".search")), chromedp.WaitNotVisible(chromedp.CSS("button.theme")), chromedp.WaitNotVisible(chromedp.CSS("button.menu")),
	)
}

func TestOnAPhoneAButtonShowsThePages(t *testing.T) {
	b := open(t, 360, 740, "light")
	b.visit("docs/guide.html")
	b.do(
		chromedp.WaitNotVisible(chromedp.CSS("nav.pages")),
		chromedp.Click(chromedp.CSS("button.menu")),
		chromedp.WaitVisible(chromedp.CSS(`nav.pages a[href="why.html"]`)),
	)
	if got := b.see(); len(got.Wider)+len(got.Faint) > 0 {
		t.Errorf("with the pages: %q", append(got.Wider, got.Faint...))
	}
	b.do(chromedp.Click(chromedp.CSS(`nav.pages a[href="why.html"]`)))
	b.until(`location.pathname.endsWith("/docs/why.html")`)
}

func TestTheFirstKeyLeadsToTheContent(t *testing.T) {
	b := open(t, 1280, 900, "light")
	b.visit("docs/guide.html")
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first Tab goes to %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.id === "content"`)
}
