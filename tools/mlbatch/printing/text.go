// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
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

// OneLineError is an error of an API server, which may have several lines, in one.
func OneLineError(err error) error { return oneLine{err} }

type oneLine struct{ error }

func (e oneLine) Error() string { return OneLine(e.error.Error()) }

func (e oneLine) Unwrap() error { return e.error }

// JoinErrors returns all errors in one line, or nil if there are none.
func JoinErrors(all []error) error {
	var line error
	for _, err := range all {
		switch {
		case err == nil:
		case line == nil:
			line = err
		default:
			line = fmt.Errorf("%w; %w", line, err)
		}
	}
	return line
}
