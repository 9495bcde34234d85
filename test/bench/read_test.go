// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/bench"
)

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	var got bench.Report
	if there, err := bench.Read(file, &got); there || err != nil {
		t.Errorf("there is a report: %t, %v", there, err)
	}
	want := bench.Report{Head: bench.Head{Commit: "abc"}, Results: []bench.Result{{Scenario: "burst", PerSecond: 2}}, Reactions: bench.Reactions{{Nodes: 3}}}
	if err := bench.Write(file, want); err != nil {
		t.Fatal(err)
	}
	if there, err := bench.Read(file, &got); !there || err != nil {
		t.Errorf("there is a report: %t, %v", there, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
