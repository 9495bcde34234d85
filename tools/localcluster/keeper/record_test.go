// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

func TestAnUnrecordedKeeperExits(t *testing.T) {
	for name, c := range map[string]struct {
		written []byte
		stays   bool
	}{
		"it is recorded":                {[]byte{1}, true},
		"the command was killed before": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			recorded, record, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := record.Write(c.written); err != nil {
				t.Fatal(err)
			}
			record.Close()
			if err := awaitRecord(recorded); (err == nil) != c.stays {
				t.Errorf("got %v", err)
			}
		})
	}
}
