// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"

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
	which := "pod " + attempt.Pod
	if attempt.Rank != "" {
		which += ", rank " + attempt.Rank
	}
	if attempt.Node != "" {
		which += ", on node " + attempt.Node
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Last words of %s (exit code %d, %s):\n", printing.OneLine(which), attempt.ExitCode, attempt.Ended.UTC().Format("2006-01-02T15:04:05Z"))
	for line := range strings.SplitSeq(printing.WithoutControls(attempt.LastWords), "\n") {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}
