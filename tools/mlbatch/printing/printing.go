// SPDX-License-Identifier: Apache-2.0

// Package printing answers: how does a result look? It prints tables for people, and JSON and YAML for
// programs.
package printing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// Table prints rows whose cells are one line each. The first row has the headings.
func Table(out io.Writer, rows [][]string) error {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = cmp.Or(OneLine(row[i]), "-")
		}
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	return columns.Flush()
}

// JSON prints an object for programs.
func JSON(out io.Writer, object any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}

// Line prints an object for programs on one line.
func Line(out io.Writer, object any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}

// YAML prints an object for programs.
func YAML(out io.Writer, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
