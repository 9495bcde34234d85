// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"
)

// Limit bounds every wait of a story. It is long because a machine that compiles may be slow.
const Limit = 3 * time.Minute

// Story is a test that waits for a cluster.
type Story struct{ *testing.T }

// Must ends the test if something went wrong.
func (s Story) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Await waits until a condition holds, which says what is missing.
func (s Story) Await(what string, holds func() error) {
	s.Helper()
	if err := Within(s.Context(), Limit, holds); err != nil {
		s.Fatalf("waiting until %s: %v", what, err)
	}
}
