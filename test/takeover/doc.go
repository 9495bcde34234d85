// SPDX-License-Identifier: Apache-2.0

// Package takeover answers whether the controllers of upstream, v1.2.2, and of ours
// can take each other's place while AppWrappers are in every phase: nothing that runs may
// be deleted or made anew. Both run as processes, before a simulated cluster. Of upstream
// nothing is known here but its program and what it writes. It takes some minutes and
// belongs to make test-long.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make test-long' or 'go test -tags=cluster -count=1 -v ./test/takeover'. It needs root.
package takeover
