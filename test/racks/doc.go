// SPDX-License-Identifier: Apache-2.0

// Package racks lets Kueue place gangs on a simulated cluster whose nodes are in racks, with the file
// of teams and the sample of docs/topology.md.
//
// Its test has the build tag cluster, so that 'go test ./...' starts no cluster. Run 'make racks'. It
// needs root.
package racks
