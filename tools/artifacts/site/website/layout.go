// SPDX-License-Identifier: Apache-2.0

package website

import (
	"bytes"
	"embed"
	"html/template"
	"path"
	"strings"
)

var (
	//go:embed layout.html
	layoutText string
	//go:embed assets
	assetFiles embed.FS

	layout = template.Must(template.New("layout").Parse(layoutText))
)

// assets are the files that all pages use.
func assets() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range []string{"assets/site.css", "assets/theme.js", "assets/site.js"} {
		content, err := assetFiles.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		files[name] = content
	}
	return files
}

// view is a page of the site, as it is written.
type view struct {
	title, summary string
	source         string // its name in the checkout
	address        string
	contents       []heading
	file           string // the address of the file that the page shows
	body           func() ([]byte, error)
}

// views are all pages of the site.
func (s *site) views() (all []view) {
	for _, name := range sorted(s.pages) {
		p := s.pages[name]
		all = append(all, view{
			title: p.title, summary: p.summary(), source: name, address: s.address(name), contents: p.contents(), body: p.body,
		})
	}
	for _, name := range sorted(s.texts) {
		all = append(all, view{title: name, source: name, address: s.address(name), file: name, body: func() ([]byte, error) {
			return show(name, s.texts[name]), nil
		}})
	}
	for _, name := range sorted(s.folders) {
		all = append(all, view{title: name, source: name, address: s.address(name), body: func() ([]byte, error) {
			return s.list(name), nil
		}})
	}
	return all
}

// longestSummary is the most that search engines show.
const longestSummary = 160

// summary is the beginning of a page.
func (p *page) summary() string {
	text := []rune(p.sections[0].text)
	if len(text) <= longestSummary {
		return string(text)
	}
	return string(text[:longestSummary-1]) + "…"
}

// contents are the headings that are listed beside a page: none if there are few.
func (p *page) contents() (listed []heading) {
	for _, h := range p.headings {
		if h.Level <= 3 {
			listed = append(listed, h)
		}
	}
	if len(listed) < 2 {
		return nil
	}
	return listed
}

func (v view) render(groups []group) ([]byte, error) {
	body, err := v.body()
	if err != nil {
		return nil, err
	}
	data := map[string]any{
		"Title": v.title, "Summary": v.summary, "Source": v.source, "Contents": v.contents, "Menus": v.menus(groups),
		"Body": template.HTML(body), // of our own pages; HTML in them is left out
		"Root": strings.Repeat("../", strings.Count(v.address, "/")), "Guide": relative(v.address, path.Join(path.Dir(guide), "index.html")),
		"AtStart": v.source == start, "AtGuide": v.source == guide,
	}
	if v.file != "" {
		data["File"] = relative(v.address, v.file)
	}
	var out bytes.Buffer
	err = layout.Execute(&out, data)
	return out.Bytes(), err
}
