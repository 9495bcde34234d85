// SPDX-License-Identifier: Apache-2.0

// Package readme generates the reference of a chart's values from values.yaml: the comment
// above a value is its description.
package readme

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	heading = regexp.MustCompile(`^# -{5,} (.*)$`)
	value   = regexp.MustCompile(`^([A-Za-z]+):`)
)

// Values returns the reference in Markdown: a section for each heading of values.yaml, with
// the default, the description and the example of each value.
func Values(valuesYAML string) (string, error) {
	defaults := map[string]any{}
	if err := yaml.Unmarshal([]byte(valuesYAML), &defaults); err != nil {
		return "", fmt.Errorf("cannot parse values.yaml: %w", err)
	}
	w := writer{defaults: defaults}
	for line := range strings.Lines(valuesYAML) {
		if err := w.line(strings.TrimSuffix(line, "\n")); err != nil {
			return "", err
		}
	}
	w.flush()
	return w.out.String(), nil
}

// writer collects a comment and the values below it, up to the next empty line.
type writer struct {
	defaults map[string]any
	out      strings.Builder
	sections int
	comment  []string
	values   []string
}

func (w *writer) line(line string) error {
	if title := heading.FindStringSubmatch(line); title != nil {
		w.sections++
		fmt.Fprintf(&w.out, "### %s\n\n", strings.ToUpper(title[1][:1])+title[1][1:])
		return nil
	}
	if text, ok := strings.CutPrefix(line, "#"); ok {
		w.comment = append(w.comment, strings.TrimPrefix(text, " "))
		return nil
	}
	if name := value.FindStringSubmatch(line); name != nil {
		text, err := json.Marshal(w.defaults[name[1]])
		if err != nil {
			return fmt.Errorf("cannot encode the default of %s: %w", name[1], err)
		}
		w.values = append(w.values, fmt.Sprintf("**`%s`** (`%s`)", name[1], strings.Trim(string(text), `"`)))
		return nil
	}
	if line == "" {
		w.flush()
	}
	return nil
}

// flush writes an entry. The comment above the first section describes the file, not a value.
func (w *writer) flush() {
	if w.sections > 0 && len(w.values) > 0 {
		fmt.Fprintf(&w.out, "%s  \n", list(w.values))
		var example []string
		for _, line := range w.comment {
			if code, is := strings.CutPrefix(line, "  "); is {
				example = append(example, code)
				continue
			}
			fmt.Fprintln(&w.out, line)
		}
		if example != nil {
			fmt.Fprintf(&w.out, "\n```yaml\n%s\n```\n", strings.Join(example, "\n"))
		}
		fmt.Fprintln(&w.out)
	}
	w.comment, w.values = nil, nil
}

// longestLine is the most characters of a line, unless it is one word.
const longestLine = 120

// list joins the values of an entry. A line that is too long goes on in the next.
func list(values []string) string {
	var out strings.Builder
	at := 0
	for i, value := range values {
		separator := ", "
		switch {
		case i == 0:
			separator = ""
		case at+len(separator)+len(value) >= longestLine: // a comma may follow
			separator, at = ",\n", 0
		}
		out.WriteString(separator + value)
		at += len(separator) + len(value)
	}
	return out.String()
}
