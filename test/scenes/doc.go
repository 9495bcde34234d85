// SPDX-License-Identifier: Apache-2.0

// Package scenes makes, on a simulated cluster with the platform, what can be wrong with work, and checks that mlbatch
// why names it: what real components say is understood. With -scenes.folder it records what was read, see
// test/recording.
//
// Its test has the build tag cluster, so that 'go test ./...' starts no cluster. Run 'make scenes'. It needs root.
package scenes
