// SPDX-License-Identifier: Apache-2.0

// Package teamsfile is pure. It answers: which teams does a values file of the chart teams have, and how does it
// look after a change? A change keeps every byte that it is not about: it edits the text where the parser found
// the value, and never writes the file from the values.
package teamsfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// byteOrderMark is what some editors of Windows write first.
const byteOrderMark = "\xef\xbb\xbf"

// File is a values file of the teams.
type File struct {
	mark, text string
	// starts has the offset of each line.
	starts []int
	root   *yamlv3.Node // a mapping
	values map[string]any
}

// Parse reads a file. What its values mean, it leaves to the chart.
func Parse(data []byte) (File, error) {
	text, marked := strings.CutPrefix(string(data), byteOrderMark)
	f := File{text: text}
	if marked {
		f.mark = byteOrderMark
	}
	if !utf8.ValidString(text) {
		return File{}, errors.New("the file is not text in UTF-8: save it as UTF-8")
	}
	var document yamlv3.Node
	decoder := yamlv3.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return File{}, errors.New("the file has no values: setup/teams has examples")
	} else if err != nil {
		return File{}, unreadable(err)
	}
	if err := decoder.Decode(&yamlv3.Node{}); !errors.Is(err, io.EOF) {
		return File{}, errors.New("the file has more than one document, and Helm reads only the first: remove the others")
	}
	if f.root = document.Content[0]; f.root.Kind != yamlv3.MappingNode {
		return File{}, fmt.Errorf("line %d is not a value of the chart teams: write KEY: VALUE", f.root.Line)
	}
	if err := yaml.Unmarshal([]byte(text), &f.values); err != nil {
		return File{}, unreadable(err)
	}
	f.starts = []int{0}
	for at := range text {
		if text[at] == '\n' {
			f.starts = append(f.starts, at+1)
		}
	}
	return f, nil
}

// parser is how the libraries begin their errors.
var parser = regexp.MustCompile(`^(error converting YAML to JSON: )?(yaml: )?(unmarshal errors:\s*)?`)

func unreadable(err error) error {
	text := parser.ReplaceAllString(err.Error(), "")
	return fmt.Errorf("the file is not valid YAML: %s", strings.Join(strings.Fields(text), " "))
}

// Bytes is the file as it is written.
func (f File) Bytes() []byte { return []byte(f.mark + f.text) }

// Same reports whether both have the same bytes.
func (f File) Same(other File) bool { return bytes.Equal(f.Bytes(), other.Bytes()) }

// Values are what Helm reads, without the chart's defaults. Do not change them.
func (f File) Values() map[string]any { return f.values }
