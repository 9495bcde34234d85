// SPDX-License-Identifier: Apache-2.0

// Package airgap tests that the platform runs on a cluster that reaches one registry and nothing else, as
// docs/offline.md says. The public registries are on loopback, behind a proxy. 'mlbatch images --mirror' copies from
// them to a registry with a password, which also listens in the network of a real local cluster.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make airgap' or 'go test -tags=cluster -count=1 -v ./test/airgap'. It needs root.
package airgap
