// SPDX-License-Identifier: Apache-2.0

// Package chaos answers what becomes of AppWrappers while the API server fails,
// others write without end, controllers end, kinds go and come, and namespaces are
// deleted: they have to end where they would have ended in calm, and quota that is given
// back may have no pod left. The controller is the real one, and so is the control plane
// of a simulated cluster; Kueue is played. It needs root.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make chaos' or 'go test -tags=cluster -count=1 -v ./test/chaos'.
package chaos
