// SPDX-License-Identifier: Apache-2.0

package work

import (
	"io"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Columns say which columns a table has beyond those that it always has.
type Columns struct{ Namespace, Wide bool }

// WriteTable prints work for people.
func (o Overview) WriteTable(out io.Writer, with Columns, now time.Time) error {
	rows := [][]string{row(with, "NAMESPACE", []string{"NAME", "KIND", "QUEUE", "STATE", "REASON", "SINCE"}, []string{"PRIORITY", "RETRIES", "MIGRATIONS", "MESSAGE"})}
	for _, i := range o.Items {
		priority := ""
		if i.Priority != nil {
			priority = strconv.Itoa(int(*i.Priority))
		}
		rows = append(rows, row(with, i.Namespace, []string{i.Name, i.Kind, i.Queue, i.State, string(i.Reason), since(i.Since, now)},
			[]string{priority, strconv.Itoa(int(i.Retries)), strconv.Itoa(int(i.Migrations)), i.Message}))
	}
	return printing.Table(out, rows)
}

func row(with Columns, namespace string, cells, wide []string) []string {
	if with.Namespace {
		cells = append([]string{namespace}, cells...)
	}
	if with.Wide {
		cells = append(cells, wide...)
	}
	return cells
}

func since(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(at.Time))
}
