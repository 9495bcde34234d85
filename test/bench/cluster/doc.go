// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the scenarios of test/bench on a simulated cluster on which nothing else
// runs. Its tests have the build tag cluster and need root. 'make test-long' runs them, 'make bench' alone.
package cluster
