// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadTraining(t *testing.T) {
	const at = "2026-11-20T10:00:0"
	for name, c := range map[string]struct {
		log  string
		want *training
	}{
		"events are found among other lines": {
			log: at + "1.5Z setting up\n" +
				at + `2Z {"event": "start", "rank": 0, "worldSize": 2}` + "\n" +
				at + `3Z {"event": "allreduce", "rank": 0, "sum": 3.0, "expected": 3.0}` + "\n" +
				at + `4Z {"event": "loss", "epoch": 0, "loss": 2.3}` + "\n" +
				at + `5Z 12 warnings` + "\n" +
				at + `6Z {"event": "loss", "epoch": 20, "loss": 0.05}` + "\n" +
				at + `7Z {"event": "done", "rank": 0, "firstLoss": 2.3, "lastLoss": 0.05, "accuracy": 0.96}` + "\n",
			want: &training{
				WorldSize: 2, AllReduceSum: 3, Epochs: 20, FirstLoss: 2.3, LastLoss: 0.05, Accuracy: 0.96,
				met: second(3), began: second(4), ended: second(6),
			},
		},
		"a log that breaks off is an error": {log: at + `1Z {"event": "start", "worldSize": 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readTraining(c.log)
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(training{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func second(n int) time.Time { return time.Date(2026, 11, 20, 10, 0, n, 0, time.UTC) }
