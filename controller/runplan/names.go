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

// AppWrapperName is the name of a Run's AppWrapper, or of that of one of its steps, and of what it
// wraps. The step is empty unless the Run is a workflow.
func AppWrapperName(run, step string) string {
	name := run
	if step != "" {
		name += "-" + step
	}
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:longestName-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// beside is the name of what an AppWrapper has beside its program. No Run has a dot in its name, so
// that nothing of another Run is called so.
func beside(appWrapper, what string) string { return appWrapper + "." + what }

func (in Input) appWrapperName() string {
	if in.Step == nil {
		return AppWrapperName(in.Run.Name, "")
	}
	return AppWrapperName(in.Run.Name, in.Step.Name)
}

// labelValue cuts a name to what a label can hold.
func labelValue(name string) string {
	if len(name) <= longestLabel {
		return name
	}
	return strings.TrimRight(name[:longestLabel], "-._")
}
