// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the scenarios of test/bench on a simulated cluster on which nothing else
// runs. Its test has the build tag cluster and needs root. 'make bench-check' compares with the
// budgets, 'make bench' measures.
package cluster
