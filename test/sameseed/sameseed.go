// SPDX-License-Identifier: Apache-2.0

// Package sameseed makes tests of random values repeatable.
package sameseed

import (
	"flag"
	"fmt"
	"os"
	"testing"

	_ "pgregory.net/rapid" // it declares the flag
)

// Run runs the tests of a package and returns the exit code, as m.Run. In continuous integration
// (CI is set) every run draws the same values, so that a failure is due to the change. Elsewhere
// each run draws new ones, or those of the flag -rapid.seed.
func Run(m *testing.M) int {
	if os.Getenv("CI") != "" {
		if err := flag.Set("rapid.seed", "20261121"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	flag.Parse()
	return m.Run()
}
