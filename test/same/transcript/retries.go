// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"slices"
	"strings"
)

// WithRetries compares a bare run with that of an AppWrapper that may begin again. What goes well bare has to go the
// same in one attempt. Else each attempt needs a cause out of a list, and the end must not be worse.
func WithRetries(bare, wrapped Summary, disturbed bool, attempts, causes []string) (differences []string) {
	well := bare.Outcome == Succeeded || bare.Outcome == Ready
	if well && !disturbed {
		if len(attempts) > 0 {
			differences = append(differences, "wrapped it began again, because of "+strings.Join(attempts, ", "))
		}
		return append(differences, Compare(bare, wrapped)...)
	}
	for _, cause := range attempts {
		if !slices.Contains(causes, cause) {
			differences = append(differences, fmt.Sprintf("an attempt ended because of %q, which is no cause of the lifecycle", cause))
		}
	}
	return append(differences, NotWorse(bare, wrapped)...)
}
