// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"strings"
	"unicode"
)

// printable makes one line of a text that others wrote, without what a terminal would obey.
func printable(text string) string {
	return strings.Join(strings.Fields(withoutControls(text)), " ")
}

// withoutControls keeps line breaks and tabs.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
