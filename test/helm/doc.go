// SPDX-License-Identifier: Apache-2.0

// Package helm tests our packages with Helm 3 and Helm 4, which users have. All other tests use
// the Go SDK. The package builds both.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make helm' or 'go test -tags=cluster -count=1 -v ./test/helm'.
package helm
