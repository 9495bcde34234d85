// SPDX-License-Identifier: Apache-2.0

package clustercheck

import (
	"fmt"
	"io"
	"strings"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// WriteTable prints a report for people: a table, and what each kind of finding means. The wide
// one has that in the table.
func WriteTable(out io.Writer, r checkup.Report, wide bool) error {
	heading := []string{"SEVERITY", "CODE", "SUBJECT", "EVIDENCE"}
	if wide {
		heading = append(heading, "MEANS", "NEXT")
	}
	rows := [][]string{heading}
	for _, f := range r.Findings {
		row := []string{string(f.Severity), string(f.Code), f.Subject, evidence(f.Evidence)}
		if wide {
			row = append(row, f.Means, f.Next)
		}
		rows = append(rows, row)
	}
	if err := printing.Table(out, rows); err != nil || wide {
		return err
	}
	return writeMeanings(out, r)
}

func writeMeanings(out io.Writer, r checkup.Report) error {
	told := map[checkup.Code]bool{}
	for _, f := range r.Findings {
		if told[f.Code] {
			continue
		}
		told[f.Code] = true
		if _, err := fmt.Fprintf(out, "\n%s: %s\n  next: %s\n", f.Code, f.Means, f.Next); err != nil {
			return err
		}
	}
	return nil
}

func evidence(all []checkup.Evidence) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = fmt.Sprintf("%s: %s", e.Name, e.Value)
	}
	return strings.Join(texts, "; ")
}
