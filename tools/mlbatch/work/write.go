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

// WriteTable prints work for people. An array is one row, unless it is wide.
func (o Overview) WriteTable(out io.Writer, with Columns, now time.Time) error {
	rows := [][]string{row(with, "NAMESPACE", []string{"NAME", "KIND", "USER", "GPUS", "STATE", "REASON", "AGE"},
		[]string{"QUEUE", "PHASE", "SINCE", "PRIORITY", "RETRIES", "MIGRATIONS", "MESSAGE"})}
	items := o.Items
	if !with.Wide {
		items = folded(items)
	}
	for _, i := range items {
		priority, gpus := "", ""
		if i.Priority != nil {
			priority = strconv.Itoa(int(*i.Priority))
		}
		if i.GPUs != nil {
			gpus = strconv.FormatInt(*i.GPUs, 10)
		}
		rows = append(rows, row(with, i.Namespace, []string{i.Name, i.Kind, i.User, gpus, i.Stage, string(i.Reason), since(i.created(), now)},
			[]string{i.Queue, i.State, since(i.Since, now), priority, strconv.Itoa(int(i.Retries)), strconv.Itoa(int(i.Migrations)), i.Message}))
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
