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

// past is about how the first container of the last attempt failed whose pods are gone, if that says more than that its
// program failed.
func past(o Objects) []Cause {
	if o.AppWrapper == nil || len(o.Pods) > 0 || len(o.AppWrapper.Status.LastAttempts) == 0 {
		return nil
	}
	phase, index := o.AppWrapper.Status.Phase, len(o.AppWrapper.Status.LastAttempts)-1
	attempt := o.AppWrapper.Status.LastAttempts[index]
	code := endedWith(attempt.ExitCode, attempt.Reason, attempt.LastWords)
	if attempt.ExitCode == 0 || code == "ProgramFailed" || phase != v1beta2.AppWrapperResetting && phase != v1beta2.AppWrapperFailed {
		return nil
	}
	return []Cause{cause(code, Evidence{o.wrapper(), fmt.Sprintf("status.lastAttempts[%d].exitCode", index), strconv.Itoa(int(attempt.ExitCode))})}
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
