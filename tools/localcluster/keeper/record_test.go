// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

func TestAKeeperThatIsNotOnRecordGoes(t *testing.T) {
	for name, c := range map[string]struct {
		written []byte
		stays   bool
	}{
		"it is on record":                         {[]byte{1}, true},
		"its command was killed before it was so": {nil, false},
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
