// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"path/filepath"

	"github.com/mlbatch/mlbatch/test/bench"
)

// evidence is all that was measured. What was not is nil.
type evidence struct {
	report     *bench.Report
	comparison *bench.Comparison
	scenarios  []bench.Scenario
	compared   []bench.Scenario
}

// read reads a folder.
func read(folder string) (e evidence, err error) {
	var report bench.Report
	var comparison bench.Comparison
	measured, err1 := bench.Read(filepath.Join(folder, "bench.json"), &report)
	compared, err2 := bench.Read(filepath.Join(folder, "bench-compare.json"), &comparison)
	var err3, err4 error
	e.scenarios, err3 = bench.Scenarios()
	e.compared, err4 = bench.Compared()
	if measured {
		e.report = &report
	}
	if compared {
		e.comparison = &comparison
	}
	return e, errors.Join(err1, err2, err3, err4)
}

// charts are the pictures of the page.
func (e evidence) charts() []bench.Chart {
	if e.report == nil || len(e.report.Results) == 0 {
		return nil
	}
	return e.report.Charts(e.scenarios)
}
