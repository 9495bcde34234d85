// SPDX-License-Identifier: Apache-2.0

// Package siege attacks the platform on a simulated cluster, with all real operators and with the rights of a member,
// and judges whether anything got past the quota. Nobody has written the attacks down: package grammar draws them from
// a seed, and package referee decides.
package siege
