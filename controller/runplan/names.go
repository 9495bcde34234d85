// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// longestName is what a JobSet of 10,000 workers leaves room for: the name of its last pod,
	// NAME-node-0-9999-abcde, has 63 characters.
	longestName = 45
	// hashLength is how many digits distinguish names that were cut.
	hashLength = 8
	// longestLabel is the most characters of a label's value.
	longestLabel = 63
)

// AppWrapperName is the name of a Run's AppWrapper and of what it wraps.
func AppWrapperName(run string) string {
	if len(run) <= longestName {
		return run
	}
	sum := sha256.Sum256([]byte(run))
	return run[:longestName-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// labelValue cuts a name to what a label can hold.
func labelValue(name string) string {
	if len(name) <= longestLabel {
		return name
	}
	return strings.TrimRight(name[:longestLabel], "-._")
}
