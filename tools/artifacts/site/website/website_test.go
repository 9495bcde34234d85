// SPDX-License-Identifier: Apache-2.0

package website

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// The pages of this repository make a site, for the three sorts of readers.
func TestTheDocumentationHasNoMistakes(t *testing.T) {
	files, err := Build(os.DirFS("../../../.."), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"index.html", "docs/index.html", "docs/guide.html", "samples/job.yaml", "samples/job.yaml.html", "docs/evidence/index.html"} {
		if files[want] == nil {
			t.Errorf("the site has no %s", want)
		}
	}
	for _, readers := range []string{"administrators", "researchers", "contributors"} {
		if !strings.Contains(string(files["index.html"]), "<summary>For "+readers+"</summary>") {
			t.Errorf("the navigation has no group for %s", readers)
		}
	}
}

// pages is a checkout: the smallest that there is, and what is added or changed.
func pages(changed map[string]string) fstest.MapFS {
	all := map[string]string{
		"README.md":            "# Home\n\nWelcome to [the guide](docs/README.md).\n",
		"docs/README.md":       "# All pages\n\n## For users\n\n- [Guide](guide.md): how to\n",
		"docs/guide.md":        "# The guide\n\nText.\n",
		"docs/images/icon.svg": "<svg/>",
	}
	maps.Copy(all, changed)
	checkout := fstest.MapFS{}
	for name, text := range all {
		if text != "" {
			checkout[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return checkout
}

func build(t *testing.T, changed map[string]string) map[string]string {
	t.Helper()
	files, err := Build(pages(changed), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, content := range files {
		all[name] = string(content)
	}
	return all
}

func TestMistakesAreNamedWithTheirLine(t *testing.T) {
	guide := func(line string) map[string]string {
		return map[string]string{"docs/guide.md": "# The guide\n\n" + line + "\n"}
	}
	for name, test := range map[string]struct {
		changed map[string]string
		want    string
	}{
		"a link to a page that does not exist":   {guide("a\n[b](c.md)"), "docs/guide.md:4: links to c.md, which does not exist"},
		"a link in a table":                      {guide("| a |\n|---|\n| [b](c.md) |"), "docs/guide.md:5: links to c.md, which does not exist"},
		"an image that does not exist":           {guide("![b](c.svg)"), "docs/guide.md:3: links to c.svg, which does not exist"},
		"a heading that the page does not have":  {guide("[a](README.md#users)"), "docs/guide.md:3: links to README.md#users, but docs/README.md has no such heading"},
		"a heading of the page itself":           {guide("[a](#b)"), "docs/guide.md:3: links to #b, but docs/guide.md has no such heading"},
		"a line of a file":                       {guide("[a](images/icon.svg#L1)"), "docs/guide.md:3: links to images/icon.svg#L1, but docs/images/icon.svg has no such heading"},
		"a file outside of the repository":       {guide("[a](../../b.md)"), "docs/guide.md:3: links to ../../b.md, which is outside of the repository"},
		"an absolute file":                       {guide("[a](/README.md)"), "docs/guide.md:3: links to /README.md, which is outside of the repository"},
		"a placeholder that is HTML":             {guide("Use <name> here."), "docs/guide.md:3: has the HTML <name>, which is left out"},
		"a block of HTML":                        {guide("<details>\nx\n</details>"), "docs/guide.md:3: has the HTML <details>"},
		"a page without a title":                 {map[string]string{"docs/guide.md": "Text.\n"}, "docs/guide.md:1: has no title"},
		"a page that nothing links to":           {map[string]string{"docs/lost.md": "# Lost\n"}, "docs/lost.md: no page links to it"},
		"an entry that does not begin with link": {map[string]string{"docs/README.md": "# All\n\n## For users\n\n- [Guide](guide.md)\n- See [home](../README.md)\n"}, "docs/README.md:6: begin the entry with the link"},
		"no groups":                              {map[string]string{"docs/README.md": "# All\n\n- [Guide](guide.md)\n"}, "the navigation would be empty"},
		"no first page":                          {map[string]string{"README.md": ""}, "cannot read README.md"},
		"two pages of one name":                  {map[string]string{"docs/guide.md": "# A\n\n[b](b.md) [c](b)\n", "docs/b.md": "# B\n", "docs/b": "text"}, "another file is called docs/b.html"},
	} {
		if _, err := Build(pages(test.changed), nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestAllMistakesAreNamedAtOnce(t *testing.T) {
	_, err := Build(pages(map[string]string{"docs/guide.md": "# A\n\n[b](b.md)\n\n[c](#c)\n"}), nil)
	if got := strings.Split(err.Error(), "\n"); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

var href = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// linksOf are the links in the text of a page.
func linksOf(html string) (all []string) {
	_, text, _ := strings.Cut(html, "<main")
	text, _, _ = strings.Cut(text, "<footer")
	for _, found := range href.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

func TestLinksLeadToPagesOfTheSite(t *testing.T) {
	files := build(t, map[string]string{
		"docs/guide.md": "# The guide\n\n[a](../README.md) [b](README.md#for-users) [c](api/x.md) [d](../job.yaml) [e](#more) [f](https://example.org/x.md) [g](../more)\n\n" +
			"![h](images/icon.svg)\n\n## More\n",
		"docs/api/x.md": "# X\n\n[a](../guide.md#more) [b](../../README.md)\n",
		"job.yaml":      "kind: Job\n",
		"more/a.txt":    "a", "more/b/c.md": "# C\n", "more/.hidden": "no", "more/.git/x": "no",
	})
	for page, want := range map[string][]string{
		"docs/guide.html": {"../index.html", "index.html#for-users", "api/x.html", "../job.yaml.html", "#more", "https://example.org/x.md", "../more/index.html", "images/icon.svg", "#more"},
		"docs/api/x.html": {"../guide.html#more", "../../index.html"},
		"more/index.html": {"a.txt.html", "b/c.html"},
		"docs/index.html": {"#for-users", "guide.html"},
		"index.html":      {"docs/index.html"},
	} {
		got := linksOf(files[page])
		if want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", page, cmp.Diff(want, got))
		}
	}
	for _, hidden := range []string{"more/.hidden", "more/.git/x"} {
		if _, has := files[hidden]; has {
			t.Errorf("the site has %s", hidden)
		}
	}
}

func TestRelativeAddresses(t *testing.T) {
	for _, test := range [][3]string{
		{"index.html", "docs/guide.html", "docs/guide.html"},
		{"docs/guide.html", "index.html", "../index.html"},
		{"docs/guide.html", "docs/why.html", "why.html"},
		{"docs/guide.html", "docs/guide.html", "guide.html"},
		{"docs/guide.html", "docs/api/x.html", "api/x.html"},
		{"docs/api/x.html", "samples/a/index.html", "../../samples/a/index.html"},
		{"a/b/c/x.html", "a/c/x.html", "../../c/x.html"},
	} {
		if got := relative(test[0], test[1]); got != test[2] {
			t.Errorf("from %s to %s: got %s, want %s", test[0], test[1], got, test[2])
		}
	}
}

func TestALinkedFileIsAPageAndAFile(t *testing.T) {
	const text = "a: <b>\n</code></pre><script>bad()</script>\n"
	files := build(t, map[string]string{"docs/guide.md": "# A\n\n[b](b.yaml)\n", "docs/b.yaml": text, "docs/c.yaml": "no page links to it"})
	if files["docs/b.yaml"] != text {
		t.Errorf("the file is %q", files["docs/b.yaml"])
	}
	page := files["docs/b.yaml.html"]
	if !strings.Contains(page, "a: &lt;b&gt;\n&lt;/code&gt;") || strings.Contains(page, "<script>bad") {
		t.Errorf("the page is %s", page)
	}
	if !strings.Contains(page, `<a href="b.yaml" download>`) {
		t.Error("the page does not link to the file")
	}
	if _, has := files["docs/c.yaml"]; has {
		t.Error("the site has a file that nothing links to")
	}
}

func TestHeadingsHaveTheNamesThatGitHubGivesThem(t *testing.T) {
	p := parse("x.md", []byte("# Title\n\n## One `mlbatch why`, two_three\n\n## Same\n\n### Same\n\n## [A link](b.md) & more\n\n## Größe 2.0\n"))
	var got []string
	for _, h := range p.headings {
		got = append(got, h.ID)
	}
	want := []string{"one-mlbatch-why-two_three", "same", "same-1", "a-link--more", "größe-20"}
	if !cmp.Equal(got, want) || !p.hasAnchor("title") {
		t.Error(cmp.Diff(want, got))
	}
}

func TestTheNavigationOpensTheGroupsOfThePage(t *testing.T) {
	files := build(t, map[string]string{
		"docs/README.md": "# All\n\n## For users\n\n- [Guide](guide.md), [not this](other.md)\n\n## For both\n\n- [Again](guide.md)\n\n## Others\n\n- [Other](other.md)\n\n## Words\n\nNo list.\n",
		"docs/other.md":  "# Other\n",
	})
	for page, want := range map[string]string{
		"docs/guide.html": "open For users, open For both, Others",
		"docs/other.html": "For users, For both, open Others",
		"index.html":      "open For users, open For both, open Others",
	} {
		var got []string
		for _, found := range regexp.MustCompile(`<details( open)?>\s*<summary>([^<]*)`).FindAllStringSubmatch(files[page], -1) {
			got = append(got, strings.TrimSpace(found[1]+" "+found[2]))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %s", page, got, want)
		}
	}
	if got := strings.Count(files["docs/guide.html"], `href="guide.html" aria-current="page"`); got != 2 {
		t.Errorf("%d entries are the page itself, want 2", got)
	}
}

func TestTheSearchKnowsEverySection(t *testing.T) {
	files := build(t, map[string]string{
		"docs/guide.md": "# The guide\n\nFirst &amp; *foremost*,\nsee [home](../README.md).\n\n<!-- a comment -->\n\n## Some `code`\n\n```sh\nmake a\nmake b\n```\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n",
	})
	text, is := strings.CutPrefix(files["assets/search-index.js"], "window.searchIndex = ")
	var all []found
	if err := json.Unmarshal([]byte(text), &all); err != nil || !is {
		t.Fatal(err)
	}
	want := []found{
		{Page: "Home", Address: "index.html", Text: "Welcome to the guide."},
		{Page: "All pages", Address: "docs/index.html"},
		{Page: "All pages", Heading: "For users", Address: "docs/index.html#for-users", Text: "Guide: how to"},
		{Page: "The guide", Address: "docs/guide.html", Text: "First & foremost, see home."},
		{Page: "The guide", Heading: "Some code", Address: "docs/guide.html#some-code", Text: "make a make b x y 1 2 one two"},
	}
	if !cmp.Equal(all, want) {
		t.Error(cmp.Diff(want, all))
	}
}

func TestWhatAPageHas(t *testing.T) {
	files := build(t, map[string]string{"docs/guide.md": "# The guide\n\nIt <!-- hidden --> begins.\n\n## A & B\n\n| a |\n|--:|\n| b |\n\n## C\n\n### D\n\n#### E\n"})
	page := files["docs/guide.html"]
	for _, want := range []string{
		"<title>The guide · MLBatch</title>", `<html lang="en" data-root="../">`, `<meta name="description" content="It begins.">`,
		`<h1 id="the-guide">The guide</h1>`, `<h2 id="a--b">A &amp; B <a class="self" href="#a--b"`,
		`<div class="box"><table>`, "</table></div>",
		`<li class="level2"><a href="#a--b">A &amp; B</a></li>`, `<li class="level3"><a href="#d">D</a></li>`,
		`<a class="skip" href="#content">`, `<main id="content"`, `<footer class="source">docs/guide.md</footer>`,
		`href="../assets/site.css"`, `src="../assets/site.js"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, unwanted := range []string{"hidden -->", `class="level4"`, "style="} {
		if strings.Contains(page, unwanted) {
			t.Errorf("the page has %s", unwanted)
		}
	}
}

// Nothing is loaded from elsewhere: pages only link there.
func TestNothingIsLoadedFromElsewhere(t *testing.T) {
	files, err := Build(os.DirFS("../../../.."), nil)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := regexp.MustCompile(`<(?:script|img|link|iframe)[^>]*(?:src|href)="(?:https?:)?//[^"]*"|url\(|@import`)
	for name, content := range files {
		if !strings.HasSuffix(name, ".html") && !strings.HasPrefix(name, "assets/") || name == "assets/search-index.js" {
			continue
		}
		if found := elsewhere.Find(content); found != nil && !strings.HasSuffix(name, ".yaml.html") {
			t.Errorf("%s has %s", name, found)
		}
	}
}
