// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"strings"
	"unicode"
)

// OneLine makes one line of a text that others wrote, without what a terminal would obey.
func OneLine(text string) string {
	return strings.Join(strings.Fields(WithoutControls(text)), " ")
}

// WithoutControls keeps line breaks and tabs.
func WithoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
