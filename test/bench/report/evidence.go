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
	workloads  *bench.Workloads
	faults     *bench.Faults
	scenarios  []bench.Scenario
	compared   []bench.Scenario
}

// read reads a folder.
func read(folder string) (e evidence, err error) {
	var report bench.Report
	var comparison bench.Comparison
	var workloads bench.Workloads
	var faults bench.Faults
	measured, err1 := bench.Read(filepath.Join(folder, "bench.json"), &report)
	compared, err2 := bench.Read(filepath.Join(folder, "bench-compare.json"), &comparison)
	injected, err3 := bench.Read(filepath.Join(folder, "faults.json"), &faults)
	passed, err4 := bench.Read(filepath.Join(folder, "bench-kueue.json"), &workloads)
	var err5, err6 error
	e.scenarios, err5 = bench.Scenarios()
	e.compared, err6 = bench.Compared()
	if measured {
		e.report = &report
	}
	if compared {
		e.comparison = &comparison
	}
	if passed {
		e.workloads = &workloads
	}
	if injected {
		e.faults = &faults
	}
	return e, errors.Join(err1, err2, err3, err4, err5, err6)
}

// charts are the pictures of the page.
func (e evidence) charts() []bench.Chart {
	if e.report == nil || len(e.report.Results) == 0 {
		return nil
	}
	return e.report.Charts(e.scenarios)
}
