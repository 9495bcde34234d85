// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"encoding/json"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// scalar writes text as it is, or in quotes if it would mean something else. In a file of JSON everything is in quotes.
func (f File) scalar(text string) string {
	if !f.json() && plain(text) {
		return text
	}
	quoted, _ := json.Marshal(text) // text is no kind of value that fails
	return string(quoted)
}

// number writes an amount.
func (f File) number(text string) string {
	if f.json() && json.Unmarshal([]byte(text), new(float64)) != nil {
		return f.scalar(text)
	}
	return text
}

func (f File) json() bool {
	return f.root.Style&yamlv3.FlowStyle != 0 && len(f.root.Content) > 0 && f.root.Content[0].Style&yamlv3.DoubleQuotedStyle != 0
}

// plain reports whether all parsers read the text as itself.
func plain(text string) bool {
	if text == "" || strings.ContainsAny(text, "\n\r") {
		return false
	}
	var old []any
	var node struct{ Items []any }
	list := "[" + text + ", x]"
	return yaml.Unmarshal([]byte(list), &old) == nil && len(old) == 2 && old[0] == text &&
		yamlv3.Unmarshal([]byte("items: "+list), &node) == nil && len(node.Items) == 2 && node.Items[0] == text
}
