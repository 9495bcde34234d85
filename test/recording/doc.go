// SPDX-License-Identifier: Apache-2.0

// Package recording keeps scenes of mlbatch why: the objects that it read of a cluster, as a file of which the same
// answer can be made again without one. Golden tests of tools/mlbatch/answers/explain read these files;
// cluster tests write them, if the flag -scenes.folder says where.
package recording
