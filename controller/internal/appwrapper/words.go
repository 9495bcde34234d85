// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"strings"
	"sync"
)

// mostWords is more than there are of kinds, conditions, reasons and finalizers. Whatever
// comes when so many are kept is not kept: they stay for good.
const mostWords = 1000

// vocabulary has the words that thousands of objects share. Each object is decoded with
// its own copy of them.
type vocabulary struct {
	sync.Mutex
	words map[string]string
}

func newVocabulary() *vocabulary { return &vocabulary{words: map[string]string{}} }

func (v *vocabulary) shared(word string) string {
	v.Lock()
	defer v.Unlock()
	if kept, ok := v.words[word]; ok {
		return kept
	}
	if len(v.words) < mostWords {
		word = strings.Clone(word) // it may be a part of something long
		v.words[word] = word
	}
	return word
}

// shared is the word itself, in the one copy of it that is kept.
func shared[Word ~string](v *vocabulary, word Word) Word { return Word(v.shared(string(word))) }
