// SPDX-License-Identifier: Apache-2.0

// Package complaints answers: what is wrong with values that the schema of a chart refuses? It says so in one sentence
// without a regular expression. It is pure.
package complaints

import (
	"regexp"
	"slices"
	"strings"
)

// complaint is an error of a values schema about one value. Without a path it is about all
// values, or it is the name of the chart whose schema it is.
type complaint struct{ path, text string }

// complained matches a complaint as Helm prints it: indented by its depth in an anyOf.
var complained = regexp.MustCompile(`^\s*- at '([^']*)': (.*)$`)

// wrongType matches the complaint of an anyOf alternative of another type. It is dropped if
// another alternative has a more specific complaint.
var wrongType = regexp.MustCompile(`^got \w+, want `)

// Sentence joins the lines in which Helm complains into one.
func Sentence(lines []string) string {
	var all []complaint
	for _, line := range lines {
		c := complaint{text: strings.TrimSpace(line)}
		if parts := complained.FindStringSubmatch(line); parts != nil {
			c = complaint{parts[1], plainly(parts[2])}
		}
		if c.text != "" && c.text != "'anyOf' failed" && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	var said strings.Builder
	for _, c := range all {
		if c.saidBetter(all) {
			continue
		}
		if text := said.String(); text != "" && !strings.HasSuffix(text, ":") {
			said.WriteString(";")
		}
		said.WriteString(" " + inWords(c).String())
	}
	return strings.TrimSpace(said.String())
}

func (c complaint) String() string {
	if c.path == "" {
		return c.text
	}
	return strings.TrimPrefix(c.path, "/") + ": " + c.text
}

// saidBetter reports whether another alternative has a more specific complaint about the same value.
func (c complaint) saidBetter(all []complaint) bool {
	return c.path != "" && wrongType.MatchString(c.text) && slices.ContainsFunc(all, func(other complaint) bool {
		return !wrongType.MatchString(other.text) && strings.HasPrefix(other.path+"/", c.path+"/")
	})
}
