// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// piece is a part of the text, and what replaces it.
type piece struct {
	from, to int
	text     string
}

// with returns the file with other pieces of text. It must then mean what is wanted, and nothing else: if the text is
// stranger than this package knows, nothing is changed.
func (f File) with(line int, want map[string]any, pieces ...piece) (File, error) {
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Or(cmp.Compare(b.from, a.from), cmp.Compare(b.to, a.to)) })
	text := f.text
	for _, p := range pieces {
		if p.from > p.to || p.to > len(text) {
			return File{}, byHandError{line}
		}
		text = text[:p.from] + p.text + text[p.to:]
	}
	next, err := Parse([]byte(f.mark + text))
	if err != nil || !reflect.DeepEqual(next.values, want) {
		return File{}, byHandError{line}
	}
	return next, nil
}

// editable is an error if the parser counts lines in another way than this package.
func (f File) editable() error {
	if strings.ContainsAny(f.text, "\u0085\u2028\u2029") || strings.Count(f.text, "\r") != strings.Count(f.text, "\r\n") {
		return errors.New("cannot change the file, because it has line breaks that are neither those of Unix nor of Windows: replace them")
	}
	return nil
}

// copied are the values again, to change them.
func (f File) copied() map[string]any {
	var values map[string]any
	_ = yaml.Unmarshal([]byte(f.text), &values) // Parse has done the same
	return values
}

// put sets the value at a path to one that is written in one line. It adds the last key if it is missing.
func (f File) put(path []string, text string) (File, error) {
	want := f.copied()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil || !assign(want, path, value) {
		return File{}, byHand(f.root)
	}
	f, err := f.unshared(path)
	if err != nil {
		return File{}, err
	}
	parent, key := f.at(path[:len(path)-1]), path[len(path)-1]
	if parent == nil {
		return File{}, byHand(f.root)
	}
	old := child(parent, key)
	if old == nil {
		p, err := f.added(parent, key, text)
		if err != nil {
			return File{}, err
		}
		return f.with(parent.Line, want, p)
	}
	end, err := f.end(old)
	if err != nil {
		return File{}, err
	}
	p := piece{f.offset(old), end, text}
	if p.from == p.to { // null, as in "quota:"
		p.text = " " + text
	}
	return f.with(old.Line, want, p)
}

// added puts a new key behind the last one of a mapping.
func (f File) added(parent *yamlv3.Node, key, text string) (piece, error) {
	entry := f.scalar(key) + ": " + text
	switch {
	case parent.Kind != yamlv3.MappingNode:
		return piece{}, byHand(parent)
	case parent.Style&yamlv3.FlowStyle != 0:
		return f.addedInFlow(parent, entry)
	}
	line, err := f.last(parent)
	if err != nil {
		return piece{}, err
	}
	column := parent.Content[0].Column - 1
	return f.after(f.below(line, column), strings.Repeat(" ", column)+entry), nil
}

// addedInFlow puts an entry behind the last one of a collection in brackets or braces.
func (f File) addedInFlow(parent *yamlv3.Node, entry string) (piece, error) {
	if len(parent.Content) == 0 {
		at := f.content(parent) + 1
		return piece{at, at, entry}, nil
	}
	end, err := f.end(parent.Content[len(parent.Content)-1])
	return piece{end, end, ", " + entry}, err
}

// after puts lines behind a line.
func (f File) after(line int, lines ...string) piece {
	text, newline := strings.Join(lines, f.newline()), f.newline()
	if line+1 < len(f.starts) {
		return piece{f.start(line + 1), f.start(line + 1), text + newline}
	}
	return piece{len(f.text), len(f.text), newline + text}
}

// push adds an item to the end of the list at a path: in one line, or as the lines of a block without their
// indentation, the first of which begins with a dash.
func (f File) push(path []string, text string, lines []string) (File, error) {
	want := f.copied()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil || !assign(want, append(slices.Clone(path), "-"), value) {
		return File{}, byHand(f.root)
	}
	f, err := f.unshared(append(slices.Clone(path), "-"))
	if err != nil {
		return File{}, err
	}
	list := f.at(path)
	if list == nil {
		return File{}, byHand(f.root)
	}
	pieces, err := f.pushed(list, text, lines)
	if err != nil {
		return File{}, err
	}
	return f.with(list.Line, want, pieces...)
}

func (f File) pushed(list *yamlv3.Node, text string, lines []string) ([]piece, error) {
	empty := len(list.Content) == 0
	key := f.keyOf(list)
	switch {
	case empty && len(lines) > 1 && key != nil:
		return f.begun(list, key, lines)
	case list.Kind != yamlv3.SequenceNode:
		return nil, byHand(list)
	case list.Style&yamlv3.FlowStyle != 0:
		p, err := f.addedInFlow(list, text)
		return []piece{p}, err
	}
	p, err := f.item(list, lines)
	return []piece{p}, err
}

// item writes lines behind the last item of a block. If the items have empty lines between them, so does the new one.
func (f File) item(list *yamlv3.Node, lines []string) (piece, error) {
	last := list.Content[len(list.Content)-1]
	column, err := f.dash(last)
	if err != nil {
		return piece{}, err
	}
	line, err := f.last(last)
	if err != nil {
		return piece{}, err
	}
	indented := indentedBy(column, lines)
	if first := f.above(last.Line-1, column); len(lines) > 1 && len(list.Content) > 1 && blank(f.line(first-1)) {
		indented = append([]string{""}, indented...)
	}
	return f.after(f.below(line, column), indented...), nil
}

// begun writes the first item of an empty list as a block below its key.
func (f File) begun(list, key *yamlv3.Node, lines []string) ([]piece, error) {
	end, err := f.end(list)
	if err != nil {
		return nil, err
	}
	colon := f.offset(key) + length(f.text[f.offset(key):], ":") + 1
	return []piece{{colon, end, ""}, f.after(list.Line-1, indentedBy(key.Column+1, lines)...)}, nil
}

func indentedBy(column int, lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, strings.Repeat(" ", column)+line)
	}
	return all
}

// dash is the column of the dash of a block's item.
func (f File) dash(item *yamlv3.Node) (int, error) {
	before := f.text[f.start(item.Line-1):f.offset(item)]
	if strings.TrimSpace(before) != "-" {
		return 0, byHand(item)
	}
	return strings.IndexByte(before, '-'), nil
}

// assign changes values at a path; the step - is behind the end of a list.
func assign(values any, path []string, value any) bool {
	step := path[0]
	switch parent := values.(type) {
	case map[string]any:
		if len(path) == 1 {
			parent[step] = value
			return true
		}
		if path[1] == "-" {
			list, isList := parent[step].([]any)
			parent[step] = append(list, value)
			return isList || parent[step] == nil || len(list) == 0
		}
		return assign(parent[step], path[1:], value)
	case []any:
		i, err := strconv.Atoi(step)
		switch {
		case err != nil || i >= len(parent):
			return false
		case len(path) == 1:
			parent[i] = value
			return true
		}
		return assign(parent[i], path[1:], value)
	}
	return false
}
