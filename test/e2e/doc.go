// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the platform's user stories against the real components. It creates a local
// cluster, installs the packaged charts with nothing but values, and removes the cluster
// afterwards. It can also run on an existing cluster.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make e2e' or 'go test -tags=cluster -count=1 -v ./test/e2e'. It needs root, or a cluster of yours (docs/testing.md).
package e2e
