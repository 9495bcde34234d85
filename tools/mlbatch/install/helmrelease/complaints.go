// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"regexp"
	"slices"
	"strings"
)

// complaint is what a schema has against one value. Without a path it concerns all values,
// or is the name of the chart that complains.
type complaint struct{ path, text string }

// complained is how Helm prints one, further to the right the deeper it is in an anyOf.
var complained = regexp.MustCompile(`^\s*- at '([^']*)': (.*)$`)

// wrongType is of an alternative that was not meant, if another one has found more.
var wrongType = regexp.MustCompile(`^got \w+, want `)

// sentence puts in one line what is wrong.
func sentence(lines []string) string {
	var all []complaint
	for _, line := range lines {
		c := complaint{text: strings.TrimSpace(line)}
		if parts := complained.FindStringSubmatch(line); parts != nil {
			c = complaint{parts[1], parts[2]}
		}
		if c.text != "" && c.text != "'anyOf' failed" {
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
		said.WriteString(" " + c.String())
	}
	return strings.TrimSpace(said.String())
}

func (c complaint) String() string {
	if c.path == "" {
		return c.text
	}
	return strings.TrimPrefix(c.path, "/") + ": " + c.text
}

// saidBetter tells whether another alternative for the same value was meant.
func (c complaint) saidBetter(all []complaint) bool {
	return c.path != "" && wrongType.MatchString(c.text) && slices.ContainsFunc(all, func(other complaint) bool {
		return !wrongType.MatchString(other.text) && strings.HasPrefix(other.path+"/", c.path+"/")
	})
}
