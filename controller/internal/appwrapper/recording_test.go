// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
)

// recording is a recorder of events that writes "type reason action note" lines.
type recording chan string

func (r recording) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	r <- strings.Join([]string{eventType, reason, action, fmt.Sprintf(note, args...)}, " ")
}

func TestNotesAreCutBetweenCharacters(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a short one is kept":            {"short", "short"},
		"a long one ends with a sign":    {"0123456789abc", "0123456…"},
		"a character is not cut in half": {"012345ééééé", "012345…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := cut(tc.text, 10)
			if got != tc.want || len(got) > 10 || !utf8.ValidString(got) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
