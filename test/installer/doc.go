// SPDX-License-Identifier: Apache-2.0

// Package installer answers whether 'mlbatch install' brings the platform onto a
// cluster whatever interrupts it, changes nothing where nothing is to be done, and whether
// 'mlbatch uninstall' takes it away again. The command is the real one, and it is killed. The
// cluster is simulated.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make installs' or 'go test -tags=cluster -count=1 -v ./test/installer'. It needs root.
package installer
