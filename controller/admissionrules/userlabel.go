// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"regexp"
	"strings"
)

const longestLabelValue = 63

var notInLabelValue = regexp.MustCompile(`[^-_.0-9A-Za-z]`)

// UserLabelValue makes a label value of the name or the UID of a user. The result may be empty,
// and two users may have the same.
func UserLabelValue(text string) string {
	if len(text) > longestLabelValue {
		text = text[:longestLabelValue]
	}
	return strings.Trim(notInLabelValue.ReplaceAllString(text, "_"), "-_.")
}
