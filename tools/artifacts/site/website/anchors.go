// SPDX-License-Identifier: Apache-2.0

package website

import (
	"fmt"
	"strings"
	"unicode"
)

// anchors are the names of a page's headings.
type anchors map[string]bool

// add returns the name that GitHub gives to the next heading: links in the repository use it.
func (a anchors) add(caption string) string {
	name := slug(caption)
	unique := name
	for n := 1; a[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	a[unique] = true
	return unique
}

func slug(caption string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, caption)
}
