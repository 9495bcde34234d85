// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Readme generates the README.md of our chart from the comments in its values.yaml.
func Readme(c Chart) ([]byte, error) {
	var meta metadata
	if err := yaml.Unmarshal(c.Files[chartFile], &meta); err != nil {
		return nil, fmt.Errorf("cannot parse %s of chart %s: %w", chartFile, c.Name, err)
	}
	var values yaml.Node
	if err := yaml.Unmarshal(c.Files["values.yaml"], &values); err != nil {
		return nil, fmt.Errorf("cannot parse the values of chart %s: %w", c.Name, err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n%s\n\n", c.Name, meta.Description)
	out.WriteString("This page is generated from the chart's values.yaml (`go test ./charts -run Readme -update`).\n\n")
	if intro := values.HeadComment; intro != "" {
		fmt.Fprintf(&out, "%s\n", describe(intro, ""))
	}
	out.WriteString("## Values\n\n")
	err := describeAll(&out, "", values.Content[0])
	return out.Bytes(), err
}

// describeAll lists the keys of a section, and those of its subsections if they have comments.
// In our charts, only keys whose meaning Kubernetes defines have no comment.
func describeAll(out *bytes.Buffer, at string, section *yaml.Node) error {
	for i := 0; i < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		if key.HeadComment == "" {
			continue
		}
		name := strings.TrimPrefix(at+"."+key.Value, ".")
		if value.Kind == yaml.MappingNode && commented(value) {
			entry(out, key, fmt.Sprintf("- `%s`:", name))
			if err := describeAll(out, name, value); err != nil {
				return err
			}
			continue
		}
		if strings.Contains(value.Value, "\n") {
			entry(out, key, fmt.Sprintf("- `%s`:", name))
			fence(out, strings.Split(value.Value, "\n"), "  ")
			continue
		}
		text, err := compact(value)
		if err != nil {
			return fmt.Errorf("cannot describe %s: %w", name, err)
		}
		entry(out, key, fmt.Sprintf("- `%s` =", name), fmt.Sprintf("`%s`:", text))
	}
	return nil
}

// longestLine is the most characters of a line, unless it is one word.
const longestLine = 120

// entry writes the head of a key and its description. What does not fit on a line is on the next.
func entry(out *bytes.Buffer, key *yaml.Node, head ...string) {
	first, more, _ := strings.Cut(describe(key.HeadComment, "  "), "\n")
	at := 0
	for i, piece := range append(head, first) {
		length := utf8.RuneCountInString(piece)
		switch {
		case i == 0:
		case at+1+length > longestLine:
			out.WriteString("\n  ")
			at = len("  ")
		default:
			out.WriteString(" ")
			at++
		}
		out.WriteString(piece)
		at += length
	}
	out.WriteString("\n" + more)
}

func commented(section *yaml.Node) bool {
	return len(section.Content) > 0 && section.Content[0].HeadComment != ""
}

func compact(value *yaml.Node) (string, error) {
	var content any
	if err := value.Decode(&content); err != nil {
		return "", err
	}
	text, err := json.Marshal(content)
	return string(text), err
}

// describe turns a comment into paragraphs. Indented lines in it are an example.
func describe(comment, indent string) string {
	var out bytes.Buffer
	var example []string
	var paragraph bool
	end := func() {
		if len(example) > 0 {
			fence(&out, example, indent)
		}
		example = nil
	}
	for _, line := range strings.Split(comment, "\n") {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "#"), " ")
		switch {
		case strings.HasPrefix(line, "  "), line == "" && example != nil:
			example = append(example, line)
			continue
		case line == "":
			paragraph = true
			continue
		}
		end()
		if paragraph {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "%s%s\n", indent, line)
		paragraph = false
	}
	end()
	return strings.TrimPrefix(out.String(), indent)
}

func fence(out *bytes.Buffer, lines []string, indent string) {
	fmt.Fprintf(out, "\n%s```yaml\n", indent)
	for _, line := range lines {
		fmt.Fprintf(out, "%s\n", strings.TrimRight(indent+strings.TrimPrefix(line, "  "), " "))
	}
	fmt.Fprintf(out, "%s```\n", indent)
}
