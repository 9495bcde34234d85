// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/test/bench"
)

func TestTheSameFaultsUnderOthersAreInOneTable(t *testing.T) {
	after := func(seconds float64) metav1.Duration {
		return metav1.Duration{Duration: time.Duration(seconds * float64(time.Second))}
	}
	limit := after(60)
	faults := bench.Faults{
		Results: []bench.Fault{
			{Says: "a dead GPU", Cause: "PodRejected", Found: after(1), Again: after(1.5), GPUs: 5},
			{Says: "a final exit code", Cause: "FailedComponent", Found: after(1), GPUs: 5},
			{Says: "a flapping node"},
			{Says: "a hang", Cause: "NoProgress", Found: after(4.5), Again: after(5.5), GPUs: 5},
			{Says: "idle GPUs", Cause: "Idle", Found: after(4), Again: after(9), GPUs: 5},
			{Says: "a dead GPU", Cause: "PodRejected", Found: after(2), Again: after(2.5), GPUs: 5},
		},
		Rivals: []bench.RivalFault{
			{By: "JobSet", Says: "a dead GPU", Found: after(1), Limit: limit},
			{By: "Kueue", Says: "a dead GPU", Found: after(1), Again: after(12), Limit: limit},
			{By: "JobSet", Says: "a final exit code", Found: after(1), Limit: limit},
			{By: "Kueue", Says: "a final exit code", Found: after(1), Again: after(3), Limit: limit},
			{By: "JobSet", Says: "a flapping node", Limit: after(15)},
			{By: "Kueue", Says: "a flapping node", Found: after(5), Limit: after(15)},
			{By: "JobSet", Says: "a hang", Limit: limit},
			{By: "JobSet", Says: "idle GPUs", Without: "nobody asks"},
			{By: "JobSet", Says: "a dead GPU", Found: after(3), Again: after(4), Limit: limit},
			{By: "Kueue", Says: "a dead GPU", Found: after(2), Again: after(14), Limit: limit},
			{By: "JobSet", Says: "idle GPUs", Without: "nobody asks"},
		},
	}
	want := `| fault | AppWrapper: found, s | runs again, s | JobSet: found, s | runs again, s | Kueue: found, s | runs again, s |
|---|---|---|---|---|---|---|
| a dead GPU | 1.0 | 1.5 | 1.0 | 4.0; 1 of 2 not within 60 | 1.0 | 12.0 |
| a final exit code | 1.0 | - | 1.0 | - | 1.0 | 3.0 |
| a flapping node | left alone | - | left alone | - | stopped after 5.0, 1 of 1 | - |
| a hang | 4.5 | 5.5 | not within 60 | not within 60 | - | - |
| idle GPUs | 4.0 | 9.0 | - | - | - | - |

Not injected:

- JobSet, idle GPUs: nobody asks.
`
	if diff := cmp.Diff(want, faults.Against()); diff != "" {
		t.Error(diff)
	}
	if got := (bench.Faults{Results: faults.Results}).Against(); got != "" {
		t.Errorf("nobody else was measured, and the table is %s", got)
	}
}
