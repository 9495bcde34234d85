// SPDX-License-Identifier: Apache-2.0

// Package container tests that 'make demo' and a simulated cluster run in a plain Debian 13 in a
// container, as the reader of docs/local-cluster.md starts one, and what they say in a container
// that lacks something.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make container' or 'go test -tags=cluster -count=1 -v ./test/container'. It needs root,
// podman, runc, slirp4netns and mmdebstrap.
package container
