// SPDX-License-Identifier: Apache-2.0

package teamsdiff

import (
	"fmt"
	"io"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

// WriteTable prints the differences of objects, and below them those of quota.
func (r Report) WriteTable(out io.Writer) error {
	if len(r.Objects) > 0 {
		rows := [][]string{{"OBJECT", "STATE", "FIELD", "CLUSTER", "FILE"}}
		for _, d := range r.Objects {
			rows = append(rows, []string{d.Object, string(d.State), d.Field, d.Cluster, d.File})
		}
		if err := printing.Table(out, rows); err != nil {
			return err
		}
	}
	if len(r.Quota) == 0 {
		return nil
	}
	if len(r.Objects) > 0 {
		fmt.Fprintln(out)
	}
	return teamsfile.WriteDifferences(out, r.Quota, "CLUSTER", "FILE")
}
