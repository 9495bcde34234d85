// SPDX-License-Identifier: Apache-2.0

// Package flux lets Flux's own controllers install, change and remove the platform from the
// samples in samples/gitops/flux, on a simulated cluster. The controllers are processes of the
// test, and the charts come from a registry in it.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make flux' or 'go test -tags=cluster -count=1 -v ./test/flux'. It needs root.
package flux
