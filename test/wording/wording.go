// SPDX-License-Identifier: Apache-2.0

// Package wording checks that an error tells its reader what it must, and no more.
package wording

import (
	"strings"
	"testing"
)

// Wanted fails the test unless there is an error that contains all these words.
func Wanted(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one that contains %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q lacks %q", err, word)
		}
	}
}

// OneSentence fails the test unless a command printed nothing, and its error is one line that has all these words.
func OneSentence(t *testing.T, printed string, err error, words ...string) {
	t.Helper()
	Wanted(t, err, words...)
	if strings.Contains(err.Error(), "\n") || printed != "" {
		t.Errorf("the command says more than a sentence: %q and %q", err, printed)
	}
}
