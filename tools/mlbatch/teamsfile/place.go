// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
)

// This file answers where the nodes of the parser are in the text. The parser says only where a node begins.

// byHandError is a place that this package does not know how to edit.
type byHandError struct{ line int }

func (e byHandError) Error() string {
	return fmt.Sprintf("cannot change line %d without rewriting what is around it: edit the file by hand", e.line)
}

func byHand(n *yamlv3.Node) error { return byHandError{n.Line} }

// at returns the node at a path of keys and indices, and nil if there is none.
func (f File) at(path []string) *yamlv3.Node {
	n := f.root
	for _, step := range path {
		if n = child(n, step); n == nil {
			return nil
		}
	}
	return n
}

func child(n *yamlv3.Node, step string) *yamlv3.Node {
	i := position(n, step)
	if i < 0 {
		return nil
	}
	return n.Content[i]
}

// position is the index of a child among the contents of its parent, or -1. Keys are before their values.
func position(n *yamlv3.Node, step string) int {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step && n.Content[i].Kind == yamlv3.ScalarNode {
				return i + 1
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Content) {
			return i
		}
	}
	return -1
}

// offset is where a node begins, with its anchor and its tag.
func (f File) offset(n *yamlv3.Node) int {
	at := f.start(n.Line - 1)
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(f.text[at:])
		at += size
	}
	return at
}

// start is where a line begins. The parser puts an empty value behind the last line, if nothing follows.
func (f File) start(line int) int {
	if line < 0 || line >= len(f.starts) {
		return len(f.text)
	}
	return f.starts[line]
}

// content is where a node begins, without its anchor and its tag.
func (f File) content(n *yamlv3.Node) int {
	at := f.offset(n)
	for n.Kind != yamlv3.AliasNode && at < len(f.text) && (f.text[at] == '&' || f.text[at] == '!') {
		at += length(f.text[at:], " \t\r\n")
		at += len(f.text[at:]) - len(strings.TrimLeft(f.text[at:], " \t"))
	}
	return at
}

// length is how much of a text is before the first of these characters.
func length(text, until string) int {
	if end := strings.IndexAny(text, until); end >= 0 {
		return end
	}
	return len(text)
}

// inline reports whether a node is one piece of text, and not lines of a block.
func inline(n *yamlv3.Node) bool {
	switch n.Kind {
	case yamlv3.AliasNode:
		return true
	case yamlv3.ScalarNode:
		return n.Style&(yamlv3.LiteralStyle|yamlv3.FoldedStyle) == 0
	}
	return n.Style&yamlv3.FlowStyle != 0
}

// end is where an inline node ends.
func (f File) end(n *yamlv3.Node) (int, error) {
	at := f.content(n)
	size := -1
	switch rest := f.text[at:]; {
	case !inline(n):
	case n.Kind == yamlv3.AliasNode:
		size = 1 + len(n.Value)
	case n.Kind != yamlv3.ScalarNode:
		size = flow(rest)
	case n.Style&(yamlv3.DoubleQuotedStyle|yamlv3.SingleQuotedStyle) != 0:
		size = quoted(rest)
	case strings.HasPrefix(rest, n.Value): // else it has several lines
		size = len(n.Value)
	}
	if size < 0 || at+size > len(f.text) {
		return 0, byHand(n)
	}
	return at + size, nil
}

// flow is the size of a collection in brackets or braces, or -1.
func flow(text string) int {
	depth := 0
	for at := 0; at < len(text); {
		switch text[at] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		size := token(text, at)
		if size < 0 {
			return -1
		}
		at += size
	}
	return -1
}

// token is the size of a text in quotes or of a comment, and else 1. It is -1 if a quote has no end.
func token(text string, at int) int {
	if at == 0 || strings.IndexByte(" \t\n[{,:", text[at-1]) < 0 { // it does not begin here
		return 1
	}
	switch text[at] {
	case '"', '\'':
		return quoted(text[at:])
	case '#':
		return length(text[at:], "\n")
	}
	return 1
}

// quoted is the size of a text in quotes, or -1.
func quoted(text string) int {
	for at := 1; at < len(text); at++ {
		switch {
		case text[0] == '"' && text[at] == '\\':
			at++
		case text[0] == '\'' && strings.HasPrefix(text[at:], "''"):
			at++
		case text[at] == text[0]:
			return at + 1
		}
	}
	return -1
}

// last is the index of the last line of a node.
func (f File) last(n *yamlv3.Node) (int, error) {
	if !inline(n) {
		if len(n.Content) == 0 {
			return 0, byHand(n)
		}
		return f.last(n.Content[len(n.Content)-1])
	}
	end, err := f.end(n)
	if err != nil {
		return 0, err
	}
	line, exact := slices.BinarySearch(f.starts, end)
	if exact && end > f.offset(n) || !exact {
		line--
	}
	return line, nil
}

// line is the text of a line, without its break.
func (f File) line(i int) string {
	return strings.TrimRight(f.text[f.start(i):max(f.start(i), f.start(i+1))], "\r\n")
}

// indent is how far a line is indented, and whether it is a comment.
func indent(line string) (width int, comment bool) {
	rest := strings.TrimLeft(line, " ")
	return len(line) - len(rest), strings.HasPrefix(rest, "#")
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// newline is the line break of the file.
func (f File) newline() string {
	if strings.Contains(f.text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// below returns the index of the last comment that belongs to a node which ends at this line: those that are indented
// more than the node.
func (f File) below(line, column int) int {
	for {
		width, comment := indent(f.line(line + 1))
		if !comment || width <= column {
			return line
		}
		line++
	}
}

// above returns the index of the first comment that belongs to a node which begins at this line: those directly above
// it, and indented as it is.
func (f File) above(line, column int) int {
	for line > 0 {
		width, comment := indent(f.line(line - 1))
		if !comment || width != column {
			return line
		}
		line--
	}
	return line
}
