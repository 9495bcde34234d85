// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestThePortComesFromTheMakefile(t *testing.T) {
	for arg, want := range map[string]int{"-port=0": 0, "-port=26444": 26444, "-port=65535": 65535} {
		if got, err := portFrom([]string{arg}); got != want || err != nil {
			t.Errorf("%s: got %d (%v), want %d", arg, got, err, want)
		}
	}
}

func TestAWrongPortIsRefusedInOneSentence(t *testing.T) {
	for _, port := range []string{"abc", "65536", "-1", "36444x"} {
		_, err := portFrom([]string{"-port=" + port})
		want := `DEMO_PORT is "` + port + `", which is not a port: set it to a number from 1 to 65535`
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := portFrom([]string{"-prot=1"}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line", err)
	}
}
