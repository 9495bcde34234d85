// SPDX-License-Identifier: Apache-2.0

// Package e2e tells the platform's user stories against the real
// components: on a local cluster that is made for the run, installed from the
// packaged charts with values only, and removed afterwards; or on a cluster that
// is there.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make e2e' or 'go test -tags=cluster -count=1 -v ./test/e2e'. It needs root, or a cluster of yours (docs/testing.md).
package e2e
