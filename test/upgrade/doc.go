// SPDX-License-Identifier: Apache-2.0

// Package upgrade answers what becomes of running work when the platform is
// upgraded, removed and installed again: on a local cluster with real pods, from the
// packaged charts with values only, as docs/install.md tells administrators to do it.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make upgrade' or 'go test -tags=cluster -count=1 -v ./test/upgrade'. It needs root.
package upgrade
