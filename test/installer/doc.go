// SPDX-License-Identifier: Apache-2.0

// Package installer tests that 'mlbatch install' completes the installation after any
// interruption and changes nothing when nothing needs to change, and that 'mlbatch uninstall'
// removes the platform. The tests run the real command on a simulated cluster, and kill it.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make installs' or 'go test -tags=cluster -count=1 -v ./test/installer'. It needs root.
package installer
