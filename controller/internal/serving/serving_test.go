// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"runtime"
	"testing"

	"github.com/go-logr/logr"
)

// The profile of the memory would take more than a megabyte of it.
func TestAProgramKeepsNoProfileOfItsMemory(t *testing.T) {
	before := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = before }()
	rate := -1
	Main("1.2.3", func(string, logr.Logger) error {
		rate = runtime.MemProfileRate
		return nil
	})
	if rate != 0 {
		t.Errorf("one of so many bytes is profiled: %d", rate)
	}
}
