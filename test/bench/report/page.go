// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"text/template"

	"github.com/mlbatch/mlbatch/test/bench"
)

//go:embed page.md.tmpl
var text string

var pageTemplate = template.Must(template.New("page").Parse(text))

var emptyLines = regexp.MustCompile(`\n{3,}`)

// page is docs/evidence/benchmarks.md.
func (e evidence) page() ([]byte, error) {
	data := map[string]any{"Ours": bench.Ours, "OfRuns": bench.OfRuns, "Scenarios": e.scenarios, "Compared": e.compared}
	if e.report != nil && len(e.report.Results) > 0 {
		data["Report"] = e.report
	}
	if e.report != nil && len(e.report.Reactions) > 0 {
		data["Reactions"] = e.report.Reactions
	}
	if e.comparison != nil {
		data["Comparison"] = e.comparison
	}
	if e.workloads != nil {
		data["Workloads"] = e.workloads
	}
	if e.faults != nil {
		data["Faults"] = e.faults
	}
	page := &bytes.Buffer{}
	if err := pageTemplate.Execute(page, data); err != nil {
		return nil, fmt.Errorf("cannot write the page: %w", err)
	}
	return append(bytes.TrimSpace(emptyLines.ReplaceAll(page.Bytes(), []byte("\n\n"))), '\n'), nil
}
