// SPDX-License-Identifier: Apache-2.0

// Package simulated tests that 'localcluster up --mode=simulated --platform' gives every user a
// cluster on which the platform works: root, and another user in a user namespace. It must run
// as root, to become the other user.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run 'make
// simulated' (root's cluster), 'make simulated-users' (the others) or 'go test -tags=cluster
// -count=1 -v ./test/simulated'.
package simulated
