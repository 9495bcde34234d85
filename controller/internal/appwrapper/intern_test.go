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
	in := newInterner()
	first := unsafe.StringData(in.intern(strings.Clone("PodsReady")))
	runtime.GC()
	runtime.GC()
	if unsafe.StringData(in.intern(strings.Clone("PodsReady"))) != first {
		t.Error("the string is stored twice")
	}
}

func TestWordsThatAreNeverTheSameDoNotFillTheMemory(t *testing.T) {
	in := newInterner()
	for i := range 2 * mostInterned {
		word := fmt.Sprint("word ", i)
		if got := in.intern(word); got != word {
			t.Fatalf("%q has become %q", word, got)
		}
	}
	if len(in.strings) != mostInterned {
		t.Errorf("%d words are kept, want %d", len(in.strings), mostInterned)
	}
}
