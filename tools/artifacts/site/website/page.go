// SPDX-License-Identifier: Apache-2.0

package website

import (
	"bytes"
	"fmt"
	"html"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is what GitHub understands, too. HTML in pages is left out. The pages' policy forbids styles in them.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.Linkify),
	goldmark.WithRendererOptions(boxes),
)

// page is a file in Markdown.
type page struct {
	file     string // in the checkout
	source   []byte
	document ast.Node
	title    string
	headings []heading // without the title
	links    []link
	sections []section
	problems []error
}

// heading is a heading below the title.
type heading struct {
	Level   int
	ID      string
	Caption string
}

// section is the text below a heading, without that below smaller headings. The first has no heading.
type section struct {
	heading
	text string
}

func parse(file string, source []byte) *page {
	p := &page{file: file, source: source, document: markdown.Parser().Parse(text.NewReader(source))}
	p.sections = []section{{}}
	anchors := anchors{}
	for block := p.document.FirstChild(); block != nil; block = block.NextSibling() {
		if h, is := block.(*ast.Heading); is {
			p.addHeading(h, anchors)
			continue
		}
		last := &p.sections[len(p.sections)-1]
		last.text = strings.TrimSpace(last.text + " " + p.plain(block))
	}
	if p.title == "" {
		p.problems = append(p.problems, p.problem(0, "has no title: begin it with a line such as '# Title'"))
	}
	p.findLinks()
	return p
}

func (p *page) addHeading(h *ast.Heading, anchors anchors) {
	caption := p.plain(h)
	id := anchors.add(caption)
	h.SetAttributeString("id", []byte(id))
	if p.title == "" && h.Level == 1 {
		p.title = caption
		p.sections[0].ID = id
		return
	}
	found := heading{Level: h.Level, ID: id, Caption: caption}
	p.headings = append(p.headings, found)
	p.sections = append(p.sections, section{heading: found})
}

// hasAnchor reports whether a link may name this after #.
func (p *page) hasAnchor(id string) bool {
	for _, s := range p.sections {
		if s.ID == id {
			return true
		}
	}
	return false
}

// plain is the text of a node as a reader sees it, without line breaks.
func (p *page) plain(n ast.Node) string {
	var all strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no visitor fails
		switch n := n.(type) {
		case *ast.Text:
			p.plainText(&all, n, entering)
		case *ast.AutoLink:
			if entering {
				all.Write(n.Label(p.source))
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				all.Write(n.Lines().Value(p.source))
			}
		case *ast.HTMLBlock, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		}
		if n.Type() == ast.TypeBlock && !entering {
			all.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(all.String()), " ")
}

func (p *page) plainText(all *strings.Builder, n *ast.Text, entering bool) {
	switch {
	case !entering:
	case n.Parent().Kind() == ast.KindCodeSpan:
		all.Write(n.Value(p.source))
	default:
		all.WriteString(html.UnescapeString(string(util.UnescapePunctuations(n.Value(p.source)))))
	}
	if entering && (n.SoftLineBreak() || n.HardLineBreak()) {
		all.WriteByte(' ')
	}
}

// body is the page as HTML.
func (p *page) body() ([]byte, error) {
	var out bytes.Buffer
	err := markdown.Renderer().Render(&out, p.source, p.document)
	return out.Bytes(), err
}

// problem is a mistake at a position in the source.
func (p *page) problem(position int, format string, args ...any) error {
	line := 1 + bytes.Count(p.source[:max(position, 0)], []byte("\n"))
	return fmt.Errorf("%s:%d: %w", p.file, line, fmt.Errorf(format, args...))
}
