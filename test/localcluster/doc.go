// SPDX-License-Identifier: Apache-2.0

// Package localcluster answers whether the local cluster survives what
// happens to one: programs, commands and its keeper that are killed at any point,
// full disks, other commands at the same time, other versions. It does so to real
// clusters, with the mlbatch command that users have. It needs root.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make robust' or 'go test -tags=cluster -count=1 -v ./test/localcluster'.
package localcluster
