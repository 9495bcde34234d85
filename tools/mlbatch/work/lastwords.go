// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// lastWords are what the program of the latest such attempt wrote last, as lines for people; empty if there is nothing.
func lastWords(aw *v1beta2.AppWrapper) string {
	attempt, _ := explain.LastWords(aw)
	if attempt == nil {
		return ""
	}
	return wordsOf(attempt)
}

// whatAttemptsLeft is what the status has of the attempts that ended without success: at most three, the latest last.
func whatAttemptsLeft(aw *v1beta2.AppWrapper) string {
	var b strings.Builder
	for i := range aw.Status.LastAttempts {
		attempt := &aw.Status.LastAttempts[i]
		if attempt.LastWords != "" {
			b.WriteString(wordsOf(attempt))
			continue
		}
		fmt.Fprintf(&b, "No last words of an attempt that ended because of %s (%s)\n", printing.OneLine(attempt.Cause), attempt.Ended.UTC().Format(time.RFC3339))
	}
	return b.String()
}

func wordsOf(attempt *v1beta2.AppWrapperAttempt) string {
	which := "pod " + attempt.Pod
	if attempt.Rank != "" {
		which += ", rank " + attempt.Rank
	}
	if attempt.Node != "" {
		which += ", on node " + attempt.Node
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Last words of %s (exit code %d, %s):\n", printing.OneLine(which), attempt.ExitCode, attempt.Ended.UTC().Format(time.RFC3339))
	for line := range strings.SplitSeq(printing.WithoutControls(attempt.LastWords), "\n") {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}
