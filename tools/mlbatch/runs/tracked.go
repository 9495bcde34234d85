// SPDX-License-Identifier: Apache-2.0

package runs

import "strings"

// tracking are labels and annotations by which GitOps tools and Helm know what they have applied, and delete what they
// did not. They begin with these words.
var tracking = []string{
	"argocd.argoproj.io/", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by",
	"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "meta.helm.sh/", "helm.sh/", "config.k8s.io/",
}

// Untracked are labels or annotations of a copy that is nobody's but the user's.
func Untracked(of map[string]string) map[string]string {
	kept := map[string]string{}
	for name, value := range of {
		if !isTracking(name) {
			kept[name] = value
		}
	}
	return kept
}

func isTracking(name string) bool {
	for _, begins := range tracking {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return false
}
