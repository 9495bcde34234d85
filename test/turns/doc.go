// SPDX-License-Identifier: Apache-2.0

// Package turns plays random full clusters of several teams on a simulated cluster with the real
// Kueue and our controller, and counts how often each job is preempted and what that loses. The
// clusters are those of tools/artifacts/components/kueue/preemption, which plays them with Kueue's
// scheduler alone; see docs/decisions/0016-preemption-that-ends.md.
//
// Its tests have the build tag cluster and need root. 'make test-long' runs them.
package turns
