// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadTraining(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want *training
	}{
		"events are found among other lines": {
			log: "setting up\n" +
				`{"event": "start", "rank": 0, "worldSize": 2}` + "\n" +
				`{"event": "allreduce", "rank": 0, "sum": 3.0, "expected": 3.0}` + "\n" +
				"12 warnings\n" +
				`{"event": "done", "rank": 0, "firstLoss": 2.3, "lastLoss": 0.05, "accuracy": 0.96}` + "\n",
			want: &training{WorldSize: 2, AllReduceSum: 3, FirstLoss: 2.3, LastLoss: 0.05, Accuracy: 0.96},
		},
		"a log that breaks off is an error": {log: `{"event": "start", "worldSize": 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readTraining(c.log)
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
