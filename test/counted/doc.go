// SPDX-License-Identifier: Apache-2.0

// Package counted checks on a simulated cluster, with the real operators and the real Kueue,
// that the pods of a wrapped object never exceed the pods that Kueue has counted for it.
// Objects differ in fields that their schema has, whether or not anybody here knows them.
package counted
