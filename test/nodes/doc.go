// SPDX-License-Identifier: Apache-2.0

// Package nodes tests that the profile production survives the loss of any node: on a simulated cluster with three
// nodes for the platform, each is killed in turn while work runs.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make nodes' or 'go test -tags=cluster -count=1 -v ./test/nodes'. It needs root.
package nodes
