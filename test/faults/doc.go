// SPDX-License-Identifier: Apache-2.0

// Package faults injects faults into a simulated cluster with the platform, one after the other,
// beside twenty healthy jobs. Of each it asks: is it found, is the right cause named, does the work
// run elsewhere, does it keep its quota, and is no healthy job touched? The times that this takes, and
// the GPU-hours that it costs, are printed as a table. With a flag, the same faults are injected where JobSet
// and Kueue run the same pods.
//
// Its tests have the build tag cluster and need root. Run 'make faults'.
package faults
