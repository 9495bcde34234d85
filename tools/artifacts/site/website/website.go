// SPDX-License-Identifier: Apache-2.0

// Package website answers: which files are the documentation site of a checkout?
//
// The pages are README.md, docs/README.md and all that they lead to, and those that a program has written for the site.
// A page in Markdown becomes a page of the site. Another file becomes a page with its text and the file itself, an
// image only the file, and a folder a list of its files. So the site works without the repository and without a
// network.
//
// The package writes nothing. A mistake in a page is an error, which names all mistakes with their lines.
package website

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	// start is the first page.
	start = "README.md"
	// guide has the groups of pages: see navigation.
	guide = "docs/README.md"
	// icon is what a browser shows beside the title.
	icon = "docs/images/icon.svg"
)

// site is what was read of a checkout.
type site struct {
	checkout fs.FS
	pages    map[string]*page
	texts    map[string]string   // text files by name
	images   map[string][]byte   // and what is no text
	folders  map[string][]string // the files in a folder
	problems []error
}

// Build returns the files of the site by their names. Names have slashes. No page of the checkout can link to a written
// page, so these have a group of the navigation.
func Build(checkout fs.FS, written map[string][]byte) (map[string][]byte, error) {
	s := &site{checkout: checkout, pages: map[string]*page{}, texts: map[string]string{}, images: map[string][]byte{}, folders: map[string][]string{}}
	queue := []string{start, guide, icon}
	for _, name := range sorted(written) {
		queue = append(queue, s.addPage(name, written[name])...)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		more, err := s.take(queue[0])
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", queue[0], err)
		}
		queue = append(queue, more...)
	}
	if err := s.findOrphans(); err != nil {
		return nil, err
	}
	s.connect()
	groups := s.navigation()
	if len(written) > 0 {
		groups = append(groups, s.reference(sorted(written)))
	}
	if len(s.problems) > 0 {
		return nil, errors.Join(s.problems...)
	}
	return s.write(groups)
}

// take reads what has this name, unless it was read before, and returns the names of what that leads to.
func (s *site) take(name string) (more []string, err error) {
	if s.has(name) {
		return nil, nil
	}
	info, err := fs.Stat(s.checkout, name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return s.takeFolder(name)
	case path.Ext(name) == ".md":
		return s.takePage(name)
	}
	return nil, s.takeFile(name)
}

func (s *site) has(name string) bool {
	_, text := s.texts[name]
	_, image := s.images[name]
	return text || image || s.pages[name] != nil || s.folders[name] != nil
}

func (s *site) takePage(name string) (more []string, err error) {
	text, err := fs.ReadFile(s.checkout, name)
	if err != nil {
		return nil, err
	}
	return s.addPage(name, text), nil
}

// addPage returns the names of what the page leads to.
func (s *site) addPage(name string, text []byte) (more []string) {
	p := parse(name, text)
	s.pages[name] = p
	s.problems = append(s.problems, p.problems...)
	for i := range p.links {
		if l := &p.links[i]; l.inside() {
			var err error
			if l.leadsTo, err = s.find(p.file, l.target); err != nil {
				s.problems = append(s.problems, p.problem(l.position, "links to %s, %v", l.target, err))
				continue
			}
			more = append(more, l.leadsTo)
		}
	}
	return more
}

// findOrphans adds a problem for each page in docs/ that nothing leads to.
func (s *site) findOrphans() error {
	return fs.WalkDir(s.checkout, path.Dir(guide), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".md") && s.pages[name] == nil {
			s.problems = append(s.problems, fmt.Errorf("%s: no page links to it, so nobody finds it: add a link to %s", name, guide))
		}
		return err
	})
}

// write returns the files of a site without mistakes.
func (s *site) write(groups []group) (map[string][]byte, error) {
	files := assets()
	files["assets/search-index.js"] = s.searchIndex()
	for name, image := range s.images {
		files[name] = image
	}
	for name, text := range s.texts {
		files[name] = []byte(text)
	}
	for _, v := range s.views() {
		html, err := v.render(groups)
		if err != nil {
			return nil, fmt.Errorf("cannot write the page of %s: %w", v.source, err)
		}
		if _, taken := files[v.address]; taken {
			return nil, fmt.Errorf("cannot write the page of %s: another file is called %s, too; rename one of them", v.source, v.address)
		}
		files[v.address] = html
	}
	return files, nil
}
