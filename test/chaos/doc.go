// SPDX-License-Identifier: Apache-2.0

// Package chaos tests AppWrappers while the API server fails, other clients write continuously,
// controllers end, CRDs are deleted and created again, and namespaces are deleted. Every
// AppWrapper must reach the same end as without these failures, and no pod may remain when its
// quota is returned. The controller and the control plane of the simulated cluster are real;
// the tests play Kueue. They need root.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make chaos' or 'go test -tags=cluster -count=1 -v ./test/chaos'.
package chaos
