// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// column is a part of a row in a table.
type column struct {
	name string
	of   func(Row) string
}

var (
	ofTeam       = column{"team", func(r Row) string { return r.Team }}
	ofUser       = column{"user", func(r Row) string { return r.User }}
	ofQueue      = column{"queue", func(r Row) string { return r.Queue }}
	ofAppWrapper = column{"appWrapper", func(r Row) string { return r.AppWrapper }}
	ofCause      = column{"cause", func(r Row) string { return string(r.Cause) }}
	ofResource   = column{"resource", func(r Row) string { return r.Resource }}
)

// WriteTable prints a report for people.
func (r Report) WriteTable(out io.Writer) error {
	for i, table := range r.Tables() {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printing.Table(out, table); err != nil {
			return err
		}
	}
	return nil
}

// Tables are those that have rows, each below its headings: what was reserved, and the comparison with Kueue.
func (r Report) Tables() [][][]string {
	if len(r.Rows) == 0 {
		return nil
	}
	columns := r.columns()
	table := [][]string{headings(columns)}
	for _, row := range r.Rows {
		table = append(table, cells(row, columns))
	}
	if len(r.Rows) > len(r.Totals) {
		for _, total := range r.Totals {
			line := cells(total, columns)
			line[0] = "TOTAL"
			table = append(table, line)
		}
	}
	if len(r.Kueue) == 0 {
		return [][][]string{table}
	}
	return [][][]string{table, r.comparisons()}
}

// columns are those of the table, without classes in which there is nothing.
func (r Report) columns() []column {
	d := dimensionOf(r.By)
	columns := slices.Concat(d.columns, []column{ofResource, {"reserved", func(r Row) string { return r.Reserved.String() }}})
	if d.key == nil {
		columns = append(columns, column{"share", r.share})
	}
	for _, class := range ledger.Classes() {
		filled := func(total Row) bool { return total.Classes[class] > 0 }
		if d.key != nil && slices.ContainsFunc(r.Totals, filled) {
			columns = append(columns, column{string(class), func(r Row) string { return r.Classes[class].String() }})
		}
	}
	if r.Since != nil && r.Source == "" {
		columns = append(columns, column{"earlier", func(r Row) string { return r.Earlier.String() }})
	}
	return columns
}

// share is the part of a row in what was reserved of its resource.
func (r Report) share(row Row) string {
	i := slices.IndexFunc(r.Totals, func(total Row) bool { return total.Resource == row.Resource })
	return fmt.Sprintf("%.1f %%", percent(row.Reserved, r.Totals[i].Reserved))
}

func (r Report) comparisons() [][]string {
	table := [][]string{{"RESOURCE", "APPWRAPPERS", "COMPARED", "BOOKS", "KUEUE", "DIFFERENCE"}}
	for _, c := range r.Kueue {
		row := []string{c.Resource, strconv.Itoa(c.AppWrappers), strconv.Itoa(c.Compared), "", "", ""}
		if c.Difference != nil {
			row = append(row[:3], c.Books.String(), c.Kueue.String(), fmt.Sprintf("%+.2f %%", *c.Difference))
		}
		table = append(table, row)
	}
	return table
}

func headings(columns []column) []string {
	names := names(columns)
	for i := range names {
		names[i] = strings.ToUpper(names[i])
	}
	return names
}

func names(columns []column) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.name
	}
	return all
}

func cells(row Row, columns []column) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.of(row)
	}
	return all
}

// WriteCSV prints the rows of a report for spreadsheets. It leaves out totals, which spreadsheets would add once
// more.
func (r Report) WriteCSV(out io.Writer) error {
	columns := r.columnsForPrograms()
	table := csv.NewWriter(out)
	if err := table.Write(names(columns)); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if err := table.Write(cells(row, columns)); err != nil {
			return err
		}
	}
	table.Flush()
	return table.Error()
}

// columnsForPrograms are the same for every report by the same dimension.
func (r Report) columnsForPrograms() []column {
	d := dimensionOf(r.By)
	columns := slices.Concat(d.columns, []column{
		ofResource,
		{"appWrappers", func(r Row) string { return strings.TrimPrefix(strconv.Itoa(r.AppWrappers), "0") }},
		{"reservedHours", func(r Row) string { return r.Reserved.number() }},
	})
	for _, class := range ledger.Classes() {
		if d.key != nil {
			name := strings.ToLower(string(class[:1])) + string(class[1:]) + "Hours"
			columns = append(columns, column{name, func(r Row) string { return r.Classes[class].number() }})
		}
	}
	return append(columns, column{"earlierHours", func(r Row) string { return r.Earlier.number() }})
}
