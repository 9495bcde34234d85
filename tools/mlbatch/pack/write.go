// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// JSON encodes an AppWrapper for people to read.
func JSON(aw *v1beta2.AppWrapper) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(aw)
	return text.Bytes(), err
}

// YAML encodes an AppWrapper. A string of more than one line becomes a block, unless it has what
// a block cannot have, such as spaces at the end of a line. sigs.k8s.io/yaml would fail at some
// control characters, which it reads as YAML first.
func YAML(aw *v1beta2.AppWrapper) ([]byte, error) {
	encoded, err := JSON(aw)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &fields); err != nil {
		return nil, fmt.Errorf("cannot decode what was encoded: %w", err)
	}
	tree, err := node(fields)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err = encoder.Encode(tree)
	return text.Bytes(), err
}

func node(value any) (*yaml.Node, error) {
	switch v := value.(type) {
	case map[string]any:
		content := []*yaml.Node{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pair, err := nodes(key, v[key])
			if err != nil {
				return nil, err
			}
			content = append(content, pair...)
		}
		return &yaml.Node{Kind: yaml.MappingNode, Content: content}, nil
	case []any:
		content, err := nodes(v...)
		return &yaml.Node{Kind: yaml.SequenceNode, Content: content}, err
	case string:
		if strings.Contains(v, "\n") || v == "<<" {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Style: styleOf(v)}, nil
		}
	}
	scalar := &yaml.Node{}
	err := scalar.Encode(value)
	return scalar, err
}

func nodes(values ...any) ([]*yaml.Node, error) {
	all := make([]*yaml.Node, len(values))
	for i := range values {
		var err error
		if all[i], err = node(values[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// styleOf quotes strings whose blocks kubectl could not read: it takes a tab at the beginning for
// indentation. A key of "<<" would be a command to YAML.
func styleOf(text string) yaml.Style {
	begin := strings.TrimLeft(text, " \n")
	if begin == "" || begin == "<<" || begin[0] == '\t' {
		return yaml.DoubleQuotedStyle
	}
	return yaml.LiteralStyle
}
