// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"slices"
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"
)

// drop removes a key or an item, with the comments that belong to it.
func (f File) drop(path []string) (File, error) {
	want := f.copied()
	if _, has := forget(want, path); !has {
		return File{}, byHand(f.root)
	}
	f, err := f.unshared(path)
	if err != nil {
		return File{}, err
	}
	parent := f.at(path[:len(path)-1])
	if parent == nil || child(parent, path[len(path)-1]) == nil {
		return File{}, byHand(f.root)
	}
	index := position(parent, path[len(path)-1])
	pieces, err := f.dropped(parent, index)
	if err != nil {
		return File{}, err
	}
	return f.with(parent.Content[index].Line, want, pieces...)
}

func (f File) dropped(parent *yamlv3.Node, index int) ([]piece, error) {
	first := index // of the contents, with the key
	if parent.Kind == yamlv3.MappingNode {
		first--
	}
	switch alone := first == 0 && index == len(parent.Content)-1; {
	case parent.Style&yamlv3.FlowStyle != 0:
		p, err := f.droppedInFlow(parent, first, index)
		return []piece{p}, err
	case alone && parent.Kind == yamlv3.SequenceNode:
		return f.emptied(parent)
	case parent.Kind == yamlv3.SequenceNode:
		column, err := f.dash(parent.Content[index])
		if err != nil {
			return nil, err
		}
		p, err := f.lines(parent.Content[index], parent.Content[index], column, index == len(parent.Content)-1)
		return []piece{p}, err
	}
	key := parent.Content[first]
	p, err := f.lines(key, parent.Content[index], key.Column-1, false)
	return []piece{p}, err
}

func (f File) droppedInFlow(parent *yamlv3.Node, first, index int) (piece, error) {
	p := piece{from: f.offset(parent.Content[first])}
	if index+1 < len(parent.Content) {
		p.to = f.offset(parent.Content[index+1])
		return p, nil
	}
	end, err := f.end(parent.Content[index])
	p.to = end
	if err == nil && first > 0 {
		p.from, err = f.end(parent.Content[first-1])
	}
	return p, err
}

// lines are those from a node to the end of another one, with the comments that belong to them. The last item of a list
// takes the empty line above it along.
func (f File) lines(from, to *yamlv3.Node, column int, lastItem bool) (piece, error) {
	last, err := f.last(to)
	if err != nil {
		return piece{}, err
	}
	first := f.above(from.Line-1, column)
	last = f.below(last, column)
	if lastItem && first > 0 && blank(f.line(first-1)) {
		first--
	}
	p := piece{from: f.start(first), to: f.start(last + 1)}
	if last+1 >= len(f.starts) && first > 0 { // the file does not end with a line break
		p.from = f.start(first-1) + len(f.line(first-1))
	}
	return p, nil
}

// emptied writes [] behind the key of a list whose only item goes.
func (f File) emptied(list *yamlv3.Node) ([]piece, error) {
	key := f.keyOf(list)
	item := list.Content[0]
	if key == nil {
		return nil, byHand(list)
	}
	column, err := f.dash(item)
	if err != nil {
		return nil, err
	}
	p, err := f.lines(item, item, column, true)
	colon := f.offset(key) + length(f.text[f.offset(key):], ":") + 1
	return []piece{{colon, colon, " []"}, p}, err
}

// forget returns values without the one at a path, and whether there was one.
func forget(values any, path []string) (any, bool) {
	switch parent := values.(type) {
	case map[string]any:
		below, has := parent[path[0]]
		if len(path) == 1 {
			delete(parent, path[0])
			return parent, has
		}
		parent[path[0]], has = forget(below, path[1:])
		return parent, has
	case []any:
		i, err := strconv.Atoi(path[0])
		switch {
		case err != nil || i >= len(parent):
			return parent, false
		case len(path) == 1:
			return slices.Delete(parent, i, i+1), true
		}
		below, has := forget(parent[i], path[1:])
		parent[i] = below
		return parent, has
	}
	return values, false
}
