// SPDX-License-Identifier: Apache-2.0

package website

import (
	"bytes"
	"cmp"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// takeFile reads a file that is not Markdown.
func (s *site) takeFile(name string) error {
	content, err := fs.ReadFile(s.checkout, name)
	if err != nil {
		return err
	}
	if path.Ext(name) == ".svg" || !utf8.Valid(content) {
		s.images[name] = content
		return nil
	}
	s.texts[name] = string(content)
	return nil
}

// takeFolder lists all files in a folder and in those below it.
func (s *site) takeFolder(name string) (files []string, err error) {
	err = fs.WalkDir(s.checkout, name, func(file string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case !hidden && !entry.IsDir():
			files = append(files, file)
		}
		return nil
	})
	s.folders[name] = files
	return files, err
}

// show is the page of a text file.
func show(name, content string) []byte {
	escaped := template.HTMLEscapeString(content)
	return []byte("<h1>" + template.HTMLEscapeString(name) + "</h1>\n<pre><code>" + escaped + "</code></pre>\n")
}

// list is the page of a folder.
func (s *site) list(name string) []byte {
	var out bytes.Buffer
	out.WriteString("<h1>" + template.HTMLEscapeString(name) + "</h1>\n<ul>\n")
	for _, file := range s.folders[name] {
		href := relative(s.address(name), s.address(file))
		out.WriteString(`<li><a href="` + template.HTMLEscapeString(href) + `">` + template.HTMLEscapeString(strings.TrimPrefix(file, name+"/")) + "</a></li>\n")
	}
	out.WriteString("</ul>\n")
	return out.Bytes()
}

func sorted[K cmp.Ordered, V any](all map[K]V) []K { return slices.Sorted(maps.Keys(all)) }

// Written reads the pages that a program has written into a folder. On the site they are in docs/.
func Written(folder fs.FS) (map[string][]byte, error) {
	names, err := fs.Glob(folder, "*.md")
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	for _, name := range names {
		if pages["docs/"+name], err = fs.ReadFile(folder, name); err != nil {
			return nil, err
		}
	}
	return pages, nil
}
