// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
)

// mostInterned is more than there are kinds, conditions, reasons and finalizers. Interned
// strings stay for good, so further ones are not interned.
const mostInterned = 1000

// interner keeps one copy of each string that thousands of cached objects share. The decoder
// gives every object a copy of its own.
type interner struct {
	sync.Mutex
	strings      map[string]string
	requirements map[string]*corev1.ResourceRequirements
	// templates are what those of each AppWrapper say, by its UID.
	templates *lru.Cache
}

func newInterner() *interner {
	return &interner{strings: map[string]string{}, requirements: map[string]*corev1.ResourceRequirements{}, templates: lru.New(saidKept)}
}

func (in *interner) intern(s string) string {
	in.Lock()
	defer in.Unlock()
	if known, ok := in.strings[s]; ok {
		return known
	}
	if len(in.strings) < mostInterned {
		s = strings.Clone(s) // it may be a part of something long
		in.strings[s] = s
	}
	return s
}

// intern is the string itself, in the copy that all objects share.
func intern[String ~string](in *interner, s String) String { return String(in.intern(string(s))) }
