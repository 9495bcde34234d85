// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// This file keeps a change to one team, although teams may share text with anchors and aliases: the team that changes
// gets a copy, or leaves its text to the next one that uses it.

// unshared returns a file that means the same, in which what is at a path and what contains it are used nowhere else.
func (f File) unshared(path []string) (File, error) {
	const most = 100 // a file with more on one path is no file of teams
	for range most {
		alias, keep := f.shared(path)
		if alias == nil {
			return f, nil
		}
		pieces, err := f.copyTo(alias, keep)
		if err != nil {
			return File{}, err
		}
		if keep {
			pieces = append(pieces, f.withoutAnchor(alias.Alias))
		}
		if f, err = f.with(alias.Line, f.copied(), pieces...); err != nil {
			return File{}, err
		}
	}
	return File{}, byHand(f.root)
}

// shared returns an alias to replace by a copy, and whether the copy gets the anchor of the original.
func (f File) shared(path []string) (alias *yamlv3.Node, keep bool) {
	n := f.root
	for i, step := range path {
		if n = child(n, step); n == nil {
			return nil, false
		}
		if i == len(path)-1 {
			break // it is replaced or removed
		}
		if n.Kind == yamlv3.AliasNode {
			return n, false
		}
		if users := f.aliases(n); len(users) > 0 {
			return users[0], true
		}
	}
	inside := all(n)
	for _, anchored := range inside {
		for _, user := range f.aliases(anchored) {
			if !slices.Contains(inside, user) {
				return user, true
			}
		}
	}
	return nil, false
}

// aliases are the aliases of a node, in the order of the text.
func (f File) aliases(n *yamlv3.Node) []*yamlv3.Node {
	if n.Anchor == "" {
		return nil
	}
	return slices.DeleteFunc(all(f.root), func(user *yamlv3.Node) bool { return user.Kind != yamlv3.AliasNode || user.Alias != n })
}

// all are a node and what is below it. It does not follow aliases.
func all(n *yamlv3.Node) []*yamlv3.Node {
	nodes := []*yamlv3.Node{n}
	for _, below := range n.Content {
		nodes = append(nodes, all(below)...)
	}
	return nodes
}

// keyOf is the key of a value in a mapping that is a block, or nil.
func (f File) keyOf(value *yamlv3.Node) *yamlv3.Node {
	for _, n := range all(f.root) {
		if n.Kind != yamlv3.MappingNode || n.Style&yamlv3.FlowStyle != 0 {
			continue
		}
		for i := 1; i < len(n.Content); i += 2 {
			if n.Content[i] == value {
				return n.Content[i-1]
			}
		}
	}
	return nil
}

// withoutAnchor removes the anchor of a node.
func (f File) withoutAnchor(n *yamlv3.Node) piece {
	from := f.offset(n)
	to := from + length(f.text[from:], " \t\r\n")
	rest := f.text[to:]
	if spaces := len(rest) - len(strings.TrimLeft(rest, " \t")); spaces > 0 && !blank(f.text[to:to+spaces+length(rest[spaces:], "\n")]) {
		return piece{from, to + spaces, ""}
	}
	for from > 0 && f.text[from-1] == ' ' {
		from--
	}
	return piece{from, to, ""}
}

// copyTo replaces an alias by a copy of what it stands for.
func (f File) copyTo(alias *yamlv3.Node, keep bool) ([]piece, error) {
	original, anchor := alias.Alias, ""
	if keep {
		anchor = " &" + alias.Value
	}
	from := f.offset(alias)
	to := from + 1 + len(alias.Value)
	if inline(original) {
		end, err := f.end(original)
		if err != nil {
			return nil, err
		}
		return []piece{{from, to, strings.TrimSpace(anchor + " " + f.text[f.content(original):end])}}, nil
	}
	key := f.keyOf(alias)
	if key == nil || strings.TrimSpace(f.text[f.start(alias.Line-1):from]) == "" {
		return nil, byHand(alias)
	}
	lines, err := f.block(original, key.Column+1)
	for from > 0 && f.text[from-1] == ' ' {
		from--
	}
	return []piece{{from, to, anchor}, f.after(alias.Line-1, lines...)}, err
}

// block returns the lines of a block, indented to a column.
func (f File) block(n *yamlv3.Node, column int) ([]string, error) {
	first := n.Content[0]
	old := first.Column - 1
	if n.Kind == yamlv3.SequenceNode {
		dash, err := f.dash(first)
		if err != nil {
			return nil, err
		}
		old = dash
	}
	last, err := f.last(n)
	if err != nil {
		return nil, err
	}
	var lines []string
	for i := first.Line - 1; i <= f.below(last, old-1); i++ {
		text := f.line(i)
		if len(text) >= old && (i == first.Line-1 || blank(text[:old])) {
			text = text[old:]
		} else {
			text = strings.TrimLeft(text, " ")
		}
		if !blank(text) {
			text = strings.Repeat(" ", column) + text
		}
		lines = append(lines, text)
	}
	return lines, nil
}
