// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/test/bench"
)

func TestFaultsAreInOneTable(t *testing.T) {
	after := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	faults := bench.Faults{Results: []bench.Fault{
		{Says: "a dead GPU", Cause: "PodRejected", Found: after(time.Second), Again: after(36 * time.Second), GPUs: 10},
		{Says: "a flapping node"},
		{Says: "a final exit code", Cause: "FailedComponent", Found: after(72 * time.Second), GPUs: 5},
		{Says: "a dead GPU", Cause: "PodRejected", Found: after(3 * time.Second), Again: after(108 * time.Second), GPUs: 10},
	}}
	// 10 GPUs lose 0.1 hours in 36 s and 0.3 in 108 s; 5 GPUs lose 0.1 in 72 s.
	want := `| fault | cause | times | found, s: p50 | p99 | runs again, s: p50 | p99 | GPU-hours lost each time |
|---|---|---|---|---|---|---|---|
` + "| a dead GPU | `PodRejected` | 2 | 1.0 | 3.0 | 36.0 | 108.0 | 0.200 |\n" +
		"| a flapping node |  | 1 | - | - | - | - | 0.000 |\n" +
		"| a final exit code | `FailedComponent` | 1 | 72.0 | 72.0 | - | - | 0.100 |\n" +
		"| all |  | 4 | 3.0 | 72.0 | 36.0 | 108.0 | 0.125 |\n"
	if diff := cmp.Diff(want, faults.Table()); diff != "" {
		t.Error(diff)
	}
}
