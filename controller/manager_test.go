// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/mlbatch/mlbatch/controller/internal/config"
)

// Decoding what they watch is most of what caches do.
func TestWatchesAreDecodedInOneGo(t *testing.T) {
	options, err := managerOptions(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	if options.NewCache == nil {
		t.Error("the caches are the usual ones")
	}
}
