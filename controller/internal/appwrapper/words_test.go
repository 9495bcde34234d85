// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func TestAWordIsKeptOnceHoweverOftenGarbageIsCollected(t *testing.T) {
	v := newVocabulary()
	first := unsafe.StringData(v.shared(strings.Clone("PodsReady")))
	runtime.GC()
	runtime.GC()
	if unsafe.StringData(v.shared(strings.Clone("PodsReady"))) != first {
		t.Error("it is there twice")
	}
}

func TestWordsThatAreNeverTheSameDoNotFillTheMemory(t *testing.T) {
	v := newVocabulary()
	for i := range 2 * mostWords {
		word := fmt.Sprint("word ", i)
		if got := v.shared(word); got != word {
			t.Fatalf("%q has become %q", word, got)
		}
	}
	if len(v.words) != mostWords {
		t.Errorf("%d words are kept, want %d", len(v.words), mostWords)
	}
}
