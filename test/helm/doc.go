// SPDX-License-Identifier: Apache-2.0

// Package helm answers whether the two Helms that people have, 3 and 4, do with
// our packages what the SDK does, which all other tests use. It builds both.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make helm' or 'go test -tags=cluster -count=1 -v ./test/helm'.
package helm
