// SPDX-License-Identifier: Apache-2.0

// Package localcluster tests that the local cluster survives failures: programs, commands and
// its keeper killed at any point, full disks, concurrent commands, and other versions. It uses
// real clusters and the mlbatch command that users have. It needs root.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make robust' or 'go test -tags=cluster -count=1 -v ./test/localcluster'.
package localcluster
