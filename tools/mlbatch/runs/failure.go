// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// WriteFailure prints the last failure of a Run, with the last lines of the program.
func WriteFailure(out io.Writer, failure v1alpha1.LastFailure) {
	of := ""
	if failure.Step != "" {
		of = " of step " + failure.Step
	}
	fmt.Fprintf(out, "The last failure was attempt %d%s: %s\n", failure.Attempt, of, failureText(failure))
	for line := range strings.Lines(strings.TrimSpace(printing.WithoutControls(failure.Message))) {
		fmt.Fprintf(out, "  %s\n", strings.TrimRight(line, " \n"))
	}
}

// failureText says which container failed, and how.
func failureText(failure v1alpha1.LastFailure) string {
	who := "pod " + failure.Pod
	if failure.Container != "" {
		who = fmt.Sprintf("container %s of %s", failure.Container, who)
	}
	var how []string
	if failure.Reason != "" {
		how = append(how, failure.Reason)
	}
	if failure.ExitCode != nil {
		how = append(how, fmt.Sprintf("exit code %d", *failure.ExitCode))
	}
	return printing.OneLine(who + ": " + cmp.Or(strings.Join(how, ", "), "no reason is known"))
}

// phaseOf is what a controller has said, if there is one.
func phaseOf(run *v1alpha1.Run) string {
	if phase := run.Status.Phase; phase != "" {
		return string(phase)
	}
	return "new: no controller of Runs has looked at it; if it stays so, ask an administrator whether codeflare is enabled"
}
