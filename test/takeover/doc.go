// SPDX-License-Identifier: Apache-2.0

// Package takeover tests that upstream's controller, v1.2.2, and ours can replace each other
// while AppWrappers are in every phase: nothing that runs may be deleted or recreated. Both run
// as processes with a simulated cluster. The tests know only upstream's program and what it
// writes. They take a few minutes and are part of make test-long.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make test-long' or 'go test -tags=cluster -count=1 -v ./test/takeover'. It needs root.
package takeover
