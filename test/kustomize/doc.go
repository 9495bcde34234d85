// SPDX-License-Identifier: Apache-2.0

// Package kustomize follows docs/migrate-kustomize.md on a simulated cluster: it makes the set-up of the MLBatch
// project anew, with Kueue 0.10 and a controller of AppWrappers of that time, and then runs the commands of the
// page while work runs and waits.
//
// Its test has the build tag cluster, so that 'go test ./...' starts no cluster. Run 'make kustomize'. It needs root.
package kustomize
