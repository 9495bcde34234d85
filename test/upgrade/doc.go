// SPDX-License-Identifier: Apache-2.0

// Package upgrade tests that work keeps running while the platform is upgraded, removed and
// installed again. It uses a local cluster with real pods and the packaged charts with values
// only, and follows docs/upgrade.md and docs/remove.md.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make upgrade' or 'go test -tags=cluster -count=1 -v ./test/upgrade'. It needs root.
package upgrade
