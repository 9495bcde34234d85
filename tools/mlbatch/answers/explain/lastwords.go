// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strconv"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// LastWords is the latest attempt of which the status has what its program wrote last, and its index; nil if there is
// none.
func LastWords(aw *v1beta2.AppWrapper) (attempt *v1beta2.AppWrapperAttempt, index int) {
	if aw == nil {
		return nil, 0
	}
	for i := len(aw.Status.LastAttempts) - 1; i >= 0; i-- {
		if a := &aw.Status.LastAttempts[i]; a.LastWords != "" {
			return a, i
		}
	}
	return nil, 0
}

// lastWords adds them, if the pods that would tell are gone.
func (o Objects) lastWords() change {
	attempt, index := LastWords(o.AppWrapper)
	if attempt == nil || len(o.Pods) > 0 {
		return func(*Cause) {}
	}
	field := fmt.Sprintf("status.lastAttempts[%d]", index)
	return func(c *Cause) {
		if attempt.Pod != "" {
			also(Evidence{o.wrapper(), field + ".pod", attempt.Pod})(c)
		}
		if attempt.Node != "" {
			also(Evidence{o.wrapper(), field + ".node", attempt.Node})(c)
		}
		also(Evidence{o.wrapper(), field + ".exitCode", strconv.Itoa(int(attempt.ExitCode))})(c)
		also(Evidence{o.wrapper(), lastLines, attempt.LastWords})(c)
	}
}
