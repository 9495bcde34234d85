// SPDX-License-Identifier: Apache-2.0

package website

import (
	"errors"

	"github.com/yuin/goldmark/ast"
)

// group is a list of pages for one sort of readers.
type group struct {
	caption string
	entries []entry
}

// entry is a link of the navigation.
type entry struct{ caption, address string }

var errNoGroups = errors.New(guide + ": no heading of level 2 is followed by a list of pages: the navigation would be empty")

// navigation reads the groups from the guide: each list that follows a heading of level 2. Each entry begins with the
// link to its page.
func (s *site) navigation() (groups []group) {
	p := s.pages[guide]
	for block := p.document.FirstChild(); block != nil; block = block.NextSibling() {
		list, is := block.(*ast.List)
		h, follows := block.PreviousSibling().(*ast.Heading)
		if !is || !follows || h.Level != 2 {
			continue
		}
		groups = append(groups, group{caption: p.plain(h), entries: s.entries(p, list)})
	}
	if len(groups) == 0 {
		s.problems = append(s.problems, errNoGroups)
	}
	return groups
}

func (s *site) entries(p *page, list *ast.List) (entries []entry) {
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		l, is := item.FirstChild().FirstChild().(*ast.Link)
		if !is {
			s.problems = append(s.problems, p.problem(item.Pos(), "begin the entry with the link to its page: the navigation shows it"))
			continue
		}
		for _, known := range p.links {
			if known.destination == &l.Destination && known.leadsTo != "" {
				entries = append(entries, entry{caption: p.plain(l), address: s.address(known.leadsTo)})
			}
		}
	}
	return entries
}

// reference is the group of the written pages.
func (s *site) reference(written []string) group {
	g := group{caption: "Reference"}
	for _, name := range written {
		g.entries = append(g.entries, entry{caption: s.pages[name].title, address: s.address(name)})
	}
	return g
}
