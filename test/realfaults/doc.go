// SPDX-License-Identifier: Apache-2.0

// Package realfaults injects faults where pods are real: into containers, and into the node of a kubelet, beside
// healthy work. Of each it asks what test/faults asks on a hundred simulated nodes: is it found, is the right cause
// named, does the work run again, do the books balance, and is no healthy job touched?
//
// Its test has the build tag cluster and needs root. Run 'make realfaults'.
package realfaults
