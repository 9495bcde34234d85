// SPDX-License-Identifier: Apache-2.0

// Package argocd lets Argo CD's own controllers install, change and remove the platform from the
// samples in samples/gitops/argocd, on a simulated cluster. Application controller, repository
// server and a Redis in memory are processes of the test. The charts come from a registry in it,
// and the samples from a git repository on disk.
//
// Its tests have the build tag cluster, so that 'go test ./...' starts no cluster. Run
// 'make argocd' or 'go test -tags=cluster -count=1 -v ./test/argocd'. It needs root and git.
package argocd
