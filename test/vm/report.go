// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// report is a line that the virtual machine writes to its second serial port at the end of a
// step.
type report struct {
	Step string `json:"step"`
	// Found describes what the step saw.
	Found string `json:"found,omitempty"`
	// Problem is why the step failed; no step follows it.
	Problem string `json:"problem,omitempty"`
	// Seconds is the duration by the machine's clock, which is slower than ours if its
	// processor is emulated.
	Seconds float64 `json:"seconds"`
	// Last is true after the last step.
	Last bool `json:"last,omitempty"`
}

// follow prints reports as they arrive, with their duration here. It succeeds if the last step
// did.
func follow(reports io.Reader, out io.Writer, now func() time.Time) error {
	began := now()
	lines := bufio.NewScanner(reports)
	lines.Buffer(nil, 1<<20) // a problem may quote a log
	for lines.Scan() {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // firmware and kernel may write to the port, too
		}
		if r.Problem != "" {
			return fmt.Errorf("%s: %s", r.Step, r.Problem)
		}
		ended := now()
		fmt.Fprintf(out, "%5.0f s  %5.0f s  %s\n", ended.Sub(began).Seconds(), r.Seconds, sentence(r))
		if r.Last {
			return nil
		}
		began = ended
	}
	return errors.Join(lines.Err(), errors.New("the virtual machine ended before its last step"))
}

func sentence(r report) string {
	return strings.TrimSuffix(r.Step+": "+r.Found, ": ")
}
