// SPDX-License-Identifier: Apache-2.0

package views

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// Rows is how much work a page shows at once.
const Rows = 200

// WorkRows are some of a list of work.
type WorkRows struct {
	Items []work.Item
	// All is how many there are, and Past how many more ended more than a day ago.
	All, Past int
	// Earlier and Later are the pages of the rows before and after these, or empty.
	Earlier, Later string
}

// Table has headings, and rows of cells.
type Table struct {
	Headings []Cell
	Rows     [][]Cell
}

// Cell is a cell of a table.
type Cell struct {
	Text string
	// Number is set for what is aligned at its end.
	Number bool
	// Bar is what is drawn instead of the text.
	Bar *Meter
}

// Meter is how much of something is used, out of 100, and whether more than all of it is.
type Meter struct {
	Used   int
	Beyond bool
}

var numeric = regexp.MustCompile(`^[+-]?[0-9.]+([kMGTPEmun]i?|Ki)?( %)?$`)

// Tables are those that a command prints, each with headings.
func Tables(printed [][][]string) (all []Table) {
	for _, rows := range printed {
		var t Table
		for i, heading := range rows[0] {
			words := slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" && !numeric.MatchString(row[i]) })
			t.Headings = append(t.Headings, Cell{Text: heading, Number: !words})
		}
		for _, row := range rows[1:] {
			cells := make([]Cell, len(row))
			for i, text := range row {
				cells[i] = Cell{Text: text, Number: t.Headings[i].Number, Bar: drawn(text)}
			}
			t.Rows = append(t.Rows, cells)
		}
		all = append(all, t)
	}
	return all
}

// drawn is a bar that a command draws in characters.
func drawn(text string) *Meter {
	inner, beyond, is := strings.Cut(strings.TrimPrefix(text, "["), "]")
	if !is || !strings.HasPrefix(text, "[") || strings.Trim(inner, "#.") != "" || inner == "" {
		return nil
	}
	return &Meter{Used: strings.Count(inner, "#") * 100 / len(inner), Beyond: beyond != ""}
}

// Finding are the findings of check with one code.
type Finding struct {
	checkup.Finding
	// Where are the subjects with their evidence.
	Where []checkup.Finding
}

// grouped are findings by their code, in the order in which the codes come first.
func grouped(all []checkup.Finding) (groups []Finding) {
	at := map[checkup.Code]int{}
	for _, f := range all {
		i, known := at[f.Code]
		if !known {
			i = len(groups)
			at[f.Code] = i
			groups = append(groups, Finding{Finding: f})
		}
		groups[i].Where = append(groups[i].Where, f)
	}
	return groups
}

// Facts are rows of a name and a value, and the tables below them.
type Facts struct {
	Facts  [][]string
	Tables []Table
	Report work.Report
}

// Status divides what 'mlbatch status' prints.
func Status(r work.Report, printed [][][]string) (f Facts) {
	f.Report = r
	for _, table := range printed {
		if strings.ContainsFunc(table[0][0], unicode.IsLower) { // it has no headings
			f.Facts = append(f.Facts, table...)
			continue
		}
		f.Tables = append(f.Tables, Tables([][][]string{table})...)
	}
	return f
}
