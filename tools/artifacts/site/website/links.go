// SPDX-License-Identifier: Apache-2.0

package website

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// link is a link or an image of a page.
type link struct {
	target      string
	position    int
	destination *[]byte // where the document has the target
	leadsTo     string  // a name in the checkout
}

// findLinks also finds HTML, which the site would leave out.
func (p *page) findLinks() {
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no visitor fails
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			p.links = append(p.links, link{target: string(n.Destination), position: n.Pos(), destination: &n.Destination})
		case *ast.Image:
			p.links = append(p.links, link{target: string(n.Destination), position: n.Pos(), destination: &n.Destination})
		case *ast.HTMLBlock:
			p.refuseHTML(n.Lines().Value(p.source), n.Pos())
		case *ast.RawHTML:
			p.refuseHTML(n.Segments.Value(p.source), n.Pos())
		}
		return ast.WalkContinue, nil
	})
}

func (p *page) refuseHTML(tag []byte, position int) {
	if tag = bytes.TrimSpace(tag); !bytes.HasPrefix(tag, []byte("<!--")) {
		p.problems = append(p.problems, p.problem(position, "has the HTML %s, which is left out: use Markdown, or `code` for a placeholder", tag))
	}
}

// inside reports whether a link stays in the checkout.
func (l link) inside() bool {
	return !strings.Contains(l.target, "://") && !strings.HasPrefix(l.target, "mailto:")
}

var (
	errLeavesCheckout = errors.New("which is outside of the repository")
	errMissing        = errors.New("which does not exist")
)

// find returns the name of what a link of a page leads to.
func (s *site) find(from, target string) (string, error) {
	file, _, _ := strings.Cut(target, "#")
	if file == "" {
		return from, nil
	}
	name := path.Join(path.Dir(from), file)
	if path.IsAbs(file) || !fs.ValidPath(name) {
		return "", errLeavesCheckout
	}
	info, err := fs.Stat(s.checkout, name)
	if err != nil {
		return "", errMissing
	}
	if !info.IsDir() {
		return name, nil
	}
	if _, err := fs.Stat(s.checkout, path.Join(name, "README.md")); err == nil {
		return path.Join(name, "README.md"), nil
	}
	return name, nil
}

// connect makes the links between files of the checkout those between pages of the site.
func (s *site) connect() {
	for _, name := range sorted(s.pages) {
		p := s.pages[name]
		for _, l := range p.links {
			if l.leadsTo == "" {
				continue
			}
			_, id, named := strings.Cut(l.target, "#")
			if other := s.pages[l.leadsTo]; named && (other == nil || !other.hasAnchor(id)) {
				s.problems = append(s.problems, p.problem(l.position, "links to %s, but %s has no such heading", l.target, l.leadsTo))
				continue
			}
			to := relative(s.address(p.file), s.address(l.leadsTo))
			switch {
			case named && l.leadsTo == p.file:
				to = "#" + id
			case named:
				to += "#" + id
			}
			*l.destination = []byte(to)
		}
	}
}

// address is the name of a page of the site.
func (s *site) address(name string) string {
	switch {
	case path.Base(name) == "README.md":
		return path.Join(path.Dir(name), "index.html")
	case path.Ext(name) == ".md":
		return strings.TrimSuffix(name, ".md") + ".html"
	case s.folders[name] != nil:
		return path.Join(name, "index.html")
	case s.images[name] != nil:
		return name
	}
	return name + ".html"
}

// relative is the address of a page, as seen from another. So the site works in any folder, and from a disk.
func relative(from, to string) string {
	fromParts, toParts := strings.Split(path.Dir(from), "/"), strings.Split(to, "/")
	if path.Dir(from) == "." {
		fromParts = nil
	}
	for len(fromParts) > 0 && len(toParts) > 1 && fromParts[0] == toParts[0] {
		fromParts, toParts = fromParts[1:], toParts[1:]
	}
	return strings.Repeat("../", len(fromParts)) + strings.Join(toParts, "/")
}
